{% macro rows_of_json(rows, type) -%}
    {#-
        A query with the rows of a list.

        Arguments:
            rows: list of mappings
            type: the columns, as the fields of a struct type
    -#}
    select inline(from_json({{ delta_outbox.text_literal(tojson(rows)) }}, 'array<struct<{{ type }}>>'))
{%- endmacro %}
