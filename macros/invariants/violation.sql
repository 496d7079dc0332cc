{% macro violation(given, details={}) -%}
    {#-
        The select list of a violation: every column of `violation_columns`, null where the rule has nothing to say.

        Arguments:
            given: mapping of column to expression
            details: mapping of name to an expression for text; what is null is left out
    -#}
    {%- for column, type in delta_outbox.violation_columns().items() -%}
    {%- if column == "details" and details -%}
    map_filter(
        map(
            {%- for name, value in details.items() %}
            '{{ name }}', {{ value }}{{ "," if not loop.last }}
            {%- endfor %}
        ),
        (name, value) -> value is not null
    ) as details
    {%- else -%}
    {{ given.get(column, "cast(null as " ~ type ~ ")") }} as {{ column }}{{ "," if not loop.last }}
    {% endif -%}
    {%- endfor -%}
{%- endmacro %}
