{% macro state_of(alias) -%}
    {#-
        The columns of the projection, in order, as a list for a select.

        Arguments:
            alias: of the relation that has them
    -#}
    {%- for column in delta_outbox.state_columns() -%}
    {{ alias }}.{{ column }}{{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
