{% macro workflow_task_columns() -%}
    {#-
        The columns of a task that not every category has.

        Result: mapping, name to a mapping: `of`, the categories that have it; `needed`, the rule that asks for it (none: it may be
            empty); `instead`, another column that may stand for it; `span`, what it is called where it is a number of seconds;
            `choices`, the words that it may hold; `broken`, the rule that others break, if it is not that of the concerns.
    -#}
    {%- set calls = ["idempotent", "pessimistic_lock", "optimistic_lock", "black_box"] -%}
    {%- set all = calls + ["to_do"] -%}
    {{- return({
        "expires_seconds": {"of": all, "needed": "expires_missing", "instead": "never_expires_why", "span": "expires"},
        "third_party": {"of": calls, "needed": "third_party_missing"},
        "time_limit_seconds": {"of": calls, "needed": "time_limit_missing", "span": "time_limit"},
        "settles_within_seconds": {
            "of": ["idempotent", "pessimistic_lock"], "needed": "settles_within_missing", "span": "settles_within",
        },
        "key_valid_for_seconds": {
            "of": ["idempotent"], "needed": "key_valid_for_missing", "instead": "key_never_forgotten_why",
            "span": "key_valid_for",
        },
        "key_never_forgotten_why": {"of": ["idempotent"]},
        "why_not_pessimistic": {"of": ["optimistic_lock"], "needed": "performance_reason_missing"},
        "compromise": {"of": ["black_box"], "needed": "compromise_missing"},
        "visibility": {
            "of": ["black_box"], "needed": "concerns_missing", "choices": ["self_evident", "traceable", "invisible"],
        },
        "necessity": {
            "of": ["black_box"], "needed": "concerns_missing", "choices": ["must_happen", "should_happen", "nice_to_have"],
        },
        "hurt": {"of": ["black_box"], "needed": "concerns_missing", "choices": ["own", "third_party", "customer"]},
        "risks": {
            "of": ["black_box"], "needed": "concerns_incomplete",
            "choices": ["reputation", "legal", "data_breach", "economic_loss"],
        },
        "decided_by": {"of": ["black_box"], "needed": "concerns_incomplete"},
        "why": {"of": ["black_box"], "needed": "concerns_incomplete"},
        "roles": {"of": ["to_do"], "needed": "roles_missing"},
        "due_seconds": {"of": ["to_do"], "span": "due"},
        "told_apart_by": {"of": ["to_do"]},
        "tells_opened": {"of": ["to_do"], "choices": ["yes"], "broken": "neither_yes_nor_no"},
        "sends_link": {"of": ["to_do"], "choices": ["yes"], "broken": "neither_yes_nor_no"},
    }) -}}
{%- endmacro %}
