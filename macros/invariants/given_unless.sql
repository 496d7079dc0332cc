{% macro given_unless(column, condition) -%}
    {#-
        A condition that holds where a rule "given if and only if" is broken; a condition that is null counts as not met.

        Arguments:
            column: name of the column that the rule is about
            condition: SQL condition under which it must be given, and else must not
    -#}
    ({{ column }} is not null) <> coalesce({{ condition }}, false)
{%- endmacro %}
