{% macro ending_of_other_claim() -%}
    {#- What is wrong where a transition ends a claim that is not the live one of its delivery. -#}
    case
        when from_state <> 'CLAIMED' then null
        when coalesce(previous.state <> 'CLAIMED', true) then 'the end of a claim that was over'
        when not claim_id <=> previous.claim_id then 'the end of another claim than the live one'
    end
{%- endmacro %}
