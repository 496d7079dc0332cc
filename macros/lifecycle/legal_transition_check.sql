{% macro legal_transition_check() -%}
    {#- A condition over one row of the transition log: states and reason are a legal triple. -#}
    concat(from_state, '>', to_state, ':', reason) in (
    {%- for from_state, to_state, reasons in delta_outbox.legal_transitions() -%}
        {%- set outer_loop = loop -%}
        {%- for reason in reasons -%}
            '{{ from_state }}>{{ to_state }}:{{ reason }}'{{ ", " if not (loop.last and outer_loop.last) }}
        {%- endfor -%}
    {%- endfor -%}
    )
{%- endmacro %}
