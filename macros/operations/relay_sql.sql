{% macro relay_sql() -%}
    {#-
        The SQL that the relay and the command line evaluate themselves, compiled once: the texts of the models' own
        macros, each after a line `--- name`. Names in double underscores are filled in when a text is run;
        `outbox_policies` is a temporary view of the policies in force, made for each question: a broken seed does not
        change it.
    -#}
    {%- set state = ref("outbox_state") -%}
    {%- set events = source("outbox", "outbox_events") -%}
    {%- set transitions = source("outbox", "outbox_transitions") -%}
    {%- set commands = source("outbox", "outbox_commands") -%}
--- open_or_holding
state in (__states__) and (state <> 'DEAD' or {{ delta_outbox.may_hold() }})
--- is_due
{{ delta_outbox.is_due("__now__") }}
--- may_hold
{{ delta_outbox.may_hold() }}
--- fold_new_events
{{ delta_outbox.fold_new_events("(__new_events__)") }}
--- read_view_new_events
{{ delta_outbox.read_view("__state__", delta_outbox.fold_new_events("(__new_events__)")) }}
--- fold_transitions
{{ delta_outbox.fold_transitions("__state__", "(__new_events__)", "(__last_transitions__)") }}
--- read_view_transitions
{{ delta_outbox.read_view(
    "__state__", delta_outbox.fold_transitions("__state__", "(__new_events__)", "(__last_transitions__)"), ["transitions"]
) }}
--- fold_all
{{ delta_outbox.fold_all("__state__") }}
--- read_view_all
{{ delta_outbox.read_view("__state__", delta_outbox.fold_all("__state__"), ["transitions", "kills"]) }}
--- first_copies
{{ delta_outbox.first_copies("outbox_events_tail", "outbox_known_events") }}
--- sole_copies
{{ delta_outbox.sole_copies("outbox_events_tail") }}
--- no_copies
{{ delta_outbox.no_copies("__state__") }}
--- last_transitions
{{ delta_outbox.last_transitions("outbox_transitions_tail") }}
--- sole_transitions
{{ delta_outbox.sole_transitions("outbox_transitions_tail") }}
--- arrivals
{{ delta_outbox.fold_new_events(
    "(" ~ delta_outbox.sole_copies("(" ~ delta_outbox.events_tail_select("__source__", "_commit_version") ~ ")") ~ ")"
) }}
--- merge
{{ delta_outbox.merge_into_state(state) }}
--- replace
{{ delta_outbox.write_folded("into " ~ state ~ " replace where __touched__") }}
--- overwrite
{{ delta_outbox.write_folded("overwrite " ~ state) }}
--- events_tail
{{ delta_outbox.events_tail_select("__source__", "__arrival__") }}
--- transitions_tail
{{ delta_outbox.transitions_tail_select("__source__") }}
--- commands_tail
{{ delta_outbox.commands_tail_select("__source__", "__arrival__") }}
--- known_events
{{ delta_outbox.known_events_select(events) }}
--- no_events
{{ delta_outbox.no_changes(events) }}
--- no_transitions
{{ delta_outbox.no_changes(transitions) }}
--- no_commands
{{ delta_outbox.no_changes(commands) }}
--- eligible
{{ delta_outbox.eligible("__deliveries__", "outbox_policies", "__now__") }}
--- eligible_per_destination
{{ delta_outbox.eligible_per_destination(
    "__deliveries__", "outbox_policies", "__now__", "__unavailable__", "__each__"
) }}
--- blocked_scopes
{{ delta_outbox.blocked_scopes("__deliveries__", "outbox_policies", "__now__", "__unavailable__") }}
--- endable
{{ delta_outbox.endable("__deliveries__", "outbox_policies", "__now__", "__due_by__") }}
--- next_too_old
{{ delta_outbox.next_too_old("__deliveries__", "outbox_policies", "__now__") }}
--- position
{{ delta_outbox.position() }}
--- lane
{{ delta_outbox.lane("ordering_key", "event_id", "__lanes__") }}
--- order_of_contents
{{ delta_outbox.order_of_contents("__content__") }}
{% for kind in ["replay", "kill", "release"] -%}
--- {{ kind }}_targets
{{ delta_outbox.request_targets(
    kind, "__state__", "__request__", "__from_states__", "__is_named__", "__created__", "__now__"
) }}
{% endfor -%}
{% for kind in ["extend", "cancel", "assign", "accept_late", "migrate"] -%}
--- {{ kind }}_targets
{{ delta_outbox.task_targets(kind, "__state__", "__request__", "__is_named__", "__started__", "__now__") }}
{% endfor -%}
--- item_holders
{{ delta_outbox.item_holders(since="__since__") }}
--- request_counts
{{ delta_outbox.request_counts("__targets__") }}
--- request_examples
{{ delta_outbox.request_examples("__targets__") }}
--- request_unknown_ids
{{ delta_outbox.request_unknown_ids("__targets__", "__request__") }}
--- request_passed_keys
{{ delta_outbox.request_passed_keys("__targets__", "__state__", ref("policy_rows")) }}
--- command_rows
{{ delta_outbox.command_rows("__targets__", "__request__", "__now__") }}
--- command_status
{{ delta_outbox.command_status("__command__", transitions, state, source("outbox", "outbox_purged"), "__since__", "__applied__") }}
--- identity_horizon_days
{{ var("identity_horizon_days", 7) | int }}
--- end
{%- endmacro %}
