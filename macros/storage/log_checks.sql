{% macro log_checks(name) -%}
    {#-
        The CHECK constraints of a log, name to condition. A new table gets all of them; `migrate_logs` adds to an older one what
        it lacks, so a condition that changes gets another name.

        Spark lets any bytes pass as a string. What goes through a text of the JVM and comes back the same is UTF-8; Spark 3.5,
        which may produce as well, has no function that says so.

        twin: python/delta_outbox/delta/files/row_checks.py::_CONDITIONS

        Arguments:
            name: of the table, without `outbox_`
    -#}
    {%- set text = "concat_ws(' ', event_id, event_type, ordering_key, partition_key)" -%}
    {%- set lengths = "octet_length(event_id) <= 512 and octet_length(event_type) <= 512 and coalesce(octet_length(ordering_key) <= 1024, true) and coalesce(octet_length(partition_key) <= 1024, true)" -%}
    {{ return({
        "events": {
            "event_id_given": "length(event_id) > 0",
            "event_type_given": "length(event_type) > 0",
            "text_is_utf8": "decode(encode(" ~ text ~ ", 'UTF-16BE'), 'UTF-16BE') = " ~ text,
            "text_not_too_long": lengths,
            "instants_in_range": delta_outbox.instants_check(["created_at", "available_at", "appended_at"]),
        },
        "transitions": {
            "position_valid": "epoch >= 0 and lane >= 0 and sequence >= 1 and arrival >= 0",
            "delivery_named": "length(event_id) > 0 and length(destination) > 0",
            "counters_valid": "lifecycle >= 0 and attempt >= 0 and publish_attempts >= 0 and crashes >= 0 and suspect >= 0 and publish_attempts <= attempt and crashes <= attempt and suspect <= attempt",
            "transition_legal": delta_outbox.legal_transition_check(),
            "claim_complete": "to_state <> 'CLAIMED' or (claim_id is not null and relay_id is not null and lease_expires_at is not null and claim_size >= 1 and attempt >= 1)",
            "ending_names_claim": "from_state <> 'CLAIMED' or claim_id is not null",
            "operator_named": "reason not in ('replayed', 'operator') or (actor is not null and command_id is not null)",
            "replay_starts_over": "reason <> 'replayed' or (lifecycle >= 1 and attempt = 0 and publish_attempts = 0 and crashes = 0 and suspect = 0)",
            "instants_in_range": delta_outbox.instants_check(["occurred_at", "available_at", "lease_expires_at"]),
        },
        "commands": {
            "kind_is_known": "kind in ('replay', 'kill', 'release', 'pause', 'resume', 'complete', 'assign', 'extend', 'cancel', 'accept_late')",
            "actor_and_reason_given": "length(trim(actor)) > 0 and length(trim(reason)) > 0",
            "instants_in_range": delta_outbox.instants_check(["requested_at"]),
        },
        "progress": {
            "number_valid": "number >= 1 and length(writer) > 0",
            "instants_in_range": delta_outbox.instants_check(["planned_at"]),
        },
        "relays": {
            "kind_known": "kind in ('started', 'alive', 'stopped')",
            "instants_in_range": delta_outbox.instants_check(["at"]),
        },
        "purged": {
            "state_terminal": "state in ('PUBLISHED', 'DEAD')",
            "instants_in_range": delta_outbox.instants_check(["created_at", "ended_at"]),
        },
    }[name]) }}
{%- endmacro %}
