{% macro policy_columns() -%}
    {#-
        The columns of the policy seed in order, each with its kind, the values that it may have, and the rule in words.

        twin: python/delta_outbox/lifecycle/policy_columns.py::COLUMNS
    -#}
    {{- return({
        "event_type": {"kind": "glob", "rule": "a shell glob with *, ? and [..]"},
        "destination": {
            "kind": "destinations",
            "rule": "one or more different destinations joined by |, each a letter followed by at most 62 letters, digits, _ or -",
        },
        "route": {
            "kind": "route",
            "rule": "a template with {event_type}, {event_id}, {ordering_key}, {partition_key}, and {{ or }} for a brace",
        },
        "format": {
            "kind": "choice",
            "choices": ["raw", "cloudevents-structured", "cloudevents-binary"],
            "rule": "raw or cloudevents-structured or cloudevents-binary",
        },
        "ordering": {"kind": "choice", "choices": ["strict", "none"], "rule": "strict or none"},
        "order_scope": {"kind": "choice", "choices": ["key", "destination"], "rule": "key or destination"},
        "max_attempts": {"kind": "whole", "low": 1, "high": 1000000, "rule": "a whole number from 1 to 1000000"},
        "max_crashes": {"kind": "whole", "low": 1, "high": 1000, "rule": "a whole number from 1 to 1000"},
        "expires_after_seconds": {
            "kind": "number", "low": 0.001, "high": 1000000000, "rule": "a number from 0.001 to 1000000000",
        },
        "lease_seconds": {"kind": "number", "low": 1, "high": 86400, "rule": "a number from 1 to 86400"},
        "backoff_initial_seconds": {"kind": "number", "low": 0, "high": 86400, "rule": "a number from 0 to 86400"},
        "backoff_multiplier": {"kind": "number", "low": 1, "high": 100, "rule": "a number from 1 to 100"},
        "backoff_max_seconds": {"kind": "number", "low": 0, "high": 2592000, "rule": "a number from 0 to 2592000"},
        "backoff_jitter": {"kind": "number", "low": 0, "high": 1, "rule": "a number from 0 to 1"},
        "on_dead": {"kind": "choice", "choices": ["continue", "hold"], "rule": "continue or hold"},
    }) -}}
{%- endmacro %}
