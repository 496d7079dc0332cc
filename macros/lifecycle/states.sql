{% macro states() -%}
    {#-
        The states of the lifecycle.

        twin: python/delta_outbox/lifecycle/states.py::State
    -#}
    {{ return(["PENDING", "CLAIMED", "PUBLISHED", "DEAD"]) }}
{%- endmacro %}
