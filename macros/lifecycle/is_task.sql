{% macro is_task(column) -%}
    {#-
        A condition on an event type: it is that of a task of a workflow.

        twin: python/delta_outbox/core/reserved_names.py::reserved

        Argument: SQL expression, the event type.
    -#}
    startswith({{ column }}, 'workflow:')
{%- endmacro %}
