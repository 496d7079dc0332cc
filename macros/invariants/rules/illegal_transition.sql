{% macro illegal_transition() -%}
    {#- What is wrong where a transition is none of the six, or does not begin where the last one of its delivery ended. -#}
    case
        when not coalesce({{ delta_outbox.legal_transition_check() }}, false) then 'not a legal transition'
        when previous is null then 'begins where no delivery was open'
        when previous.state <> from_state then 'does not begin where the last one ended'
    end
{%- endmacro %}
