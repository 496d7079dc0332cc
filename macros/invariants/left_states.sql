{% macro left_states(checked) -%}
    {#-
        The states that the transitions of a verification's range may come from, as a list: terminal ones only if one does.

        Arguments:
            checked: the verification
    -#}
    ('PENDING', 'CLAIMED'{{ ", 'PUBLISHED', 'DEAD'" if checked["leaves_terminal"] }})
{%- endmacro %}
