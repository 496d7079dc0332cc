{% macro legal_transition_check() -%}
    {#- A condition over one row of the transition log: states and reason are a legal triple. -#}
    {%- for from_state, to_state, reasons in delta_outbox.legal_transitions() -%}
        (from_state = '{{ from_state }}' and to_state = '{{ to_state }}' and reason in ('{{ reasons | join("', '") }}'))
        {%- if not loop.last %} or {% endif -%}
    {%- endfor -%}
{%- endmacro %}
