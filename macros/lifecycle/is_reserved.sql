{% macro is_reserved(column) -%}
    {#-
        The condition that a text begins as names of workflows do; by it files are left out.

        twin: python/delta_outbox/core/reserved_names.py::reserved

        Arguments:
            column: of texts
    -#}
    ({{ column }} >= 'workflow:' and {{ column }} < 'workflow;')
{%- endmacro %}
