{% macro incomplete_claim() -%}
    {#- What is wrong where a claim lacks one of its fields, or says another size than it has. -#}
    case
        when to_state <> 'CLAIMED' then null
        when claim_id is null then 'a claim without claim_id'
        when relay_id is null then 'a claim by nobody'
        when lease_expires_at is null then 'a claim without a lease'
        when attempt < 1 then 'a claim without a number'
        when claim_size is null or claim_size <> deliveries then 'a claim whose size is not its deliveries'
    end
{%- endmacro %}
