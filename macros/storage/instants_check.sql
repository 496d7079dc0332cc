{% macro instants_check(columns) -%}
    {#-
        The constraint that instants are ones that an outbox knows (instant_bounds), or null.

        Arguments:
            columns: list of names
    -#}
    {%- for column in columns -%}
    coalesce({{ delta_outbox.instant_in_range(column) }}, true){{ " and " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
