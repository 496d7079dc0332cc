{% macro workflow_columns() -%}
    {#-
        The seeds of workflows and their columns. `hash` comes last, and is no part of itself.

        twin: python/delta_outbox/railway/rows.py::COLUMNS
    -#}
    {{- return({
        "railway_workflows": [
            "workflow", "version", "title", "starts_on", "start_fields", "start_contract", "instance", "first_task",
            "default_exit", "lease_seconds", "hash",
        ],
        "railway_tasks": [
            "workflow", "task", "title", "category", "identifier", "expires_seconds", "never_expires_why", "third_party",
            "time_limit_seconds", "settles_within_seconds", "key_valid_for_seconds", "key_never_forgotten_why",
            "why_not_pessimistic", "compromise", "visibility", "necessity", "hurt", "risks", "decided_by", "why", "roles",
            "due_seconds", "told_apart_by", "tells_opened", "sends_link",
        ],
        "railway_routes": ["workflow", "task", "cause", "outcome", "to_task", "to_event"],
        "railway_contracts": ["workflow", "task", "version", "contract"],
    }) -}}
{%- endmacro %}
