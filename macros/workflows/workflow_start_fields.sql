{% macro workflow_start_fields(cell) -%}
    {#-
        The fields of a start event that identifiers may use.

        twin: python/delta_outbox/railway/rows.py::start_fields

        Arguments:
            cell: of the column `start_fields`: names, or `name=key` where the payload has another key
    -#}
    {%- set fields = [] -%}
    {%- for one in cell.split() -%} {%- do fields.append(one.split("=")[0]) -%} {%- endfor -%}
    {{- return(fields) -}}
{%- endmacro %}
