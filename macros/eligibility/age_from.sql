{% macro age_from() -%}
    {#-
        Where the age of a delivery counts from: when it was appended, could first be taken, or was replayed.

        twin: python/delta_outbox/lifecycle/claims.py::COLUMNS
    -#}
    greatest(appended_at, scheduled_at, replayed_at)
{%- endmacro %}
