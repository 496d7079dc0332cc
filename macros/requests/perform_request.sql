{% macro perform_request(kind, given) -%}
    {#-
        Perform `dbt run-operation replay|kill|release_expired_claims`: check, refresh, show, and append unless it is a
        dry run. What is shown is JSON in ASCII: data cannot steer the terminal.

        Arguments:
            kind: replay, kill or release
            given: mapping, name of the argument to what came
    -#}
    {%- if execute -%}
        {%- do delta_outbox.check_logs() -%}
        {%- set checked, problems = {}, [] -%}
        {%- do delta_outbox.check_request(kind, given, checked, problems) -%}
        {%- if problems -%}
            {%- do exceptions.raise_compiler_error(kind ~ ": " ~ problems | join("; ") ~ ".") -%}
        {%- endif -%}

        {%- set command_id = invocation_id | replace("-", "") -%}
        {%- set version = delta_outbox.refresh_now() -%}
        {%- set state = ref("outbox_state") ~ " version as of " ~ version -%}
        {%- set is_named = checked.event_ids is not none -%}
        {%- if is_named or kind == "kill" -%}
            {%- set from_states = delta_outbox.states() -%}
        {%- else -%}
            {%- set from_states = [checked.state if kind == "replay" else "CLAIMED"] -%}
        {%- endif -%}
        {%- set created = [] -%}
        {%- if checked.get("since") is not none -%} {%- do created.append("created_at >= timestamp_micros(" ~ checked.since ~ ")") -%} {%- endif -%}
        {%- if checked.get("until") is not none -%} {%- do created.append("created_at < timestamp_micros(" ~ checked.until ~ ")") -%} {%- endif -%}
        {#- As text in each question, not as views: whoever shares the session may have views of their own. -#}
        {%- set request = "(" ~ delta_outbox.request_row(kind, command_id, checked) ~ ")" -%}
        {%- set targets = "(" ~ delta_outbox.request_targets(
            kind, state, request,
            "'" ~ from_states | join("', '") ~ "'",
            is_named | string | lower,
            created | join(" and ") or "true",
            delta_outbox.now_utc()
        ) ~ ")" -%}

        {%- if is_named -%}
            {%- set unknown = run_query(delta_outbox.request_unknown_ids(targets, request)) | list -%}
            {%- if unknown -%}
                {%- do exceptions.raise_compiler_error(
                    kind ~ ": `event_ids` must name events of this outbox. Got: " ~ delta_outbox.shown(unknown[0][0])
                    ~ (" and " ~ (unknown | length - 1) ~ " more" if unknown | length > 1 else "") ~ "."
                ) -%}
            {%- endif -%}
        {%- endif -%}

        {%- set total = namespace(deliveries=0) -%}
        {%- for row in run_query(delta_outbox.request_counts(targets)) -%}
            {%- set total.deliveries = total.deliveries + row["deliveries"] -%}
            {%- do log(kind ~ ": " ~ delta_outbox.ascii_json(row, ["state", "event_type", "destination", "deliveries"]), info=true) -%}
        {%- endfor -%}
        {%- for row in run_query(delta_outbox.request_examples(targets)) -%}
            {%- set what = "for example" if row["refusal"] is none else "left out" -%}
            {%- set columns = ["event_id", "destination", "state", "event_type", "ordering_key", "created_at", "last_error"] -%}
            {%- do log(kind ~ ": " ~ what ~ " " ~ delta_outbox.ascii_json(row, columns + (["refusal"] if row["refusal"] is not none else [])), info=true) -%}
        {%- endfor -%}
        {%- if kind == "replay" and total.deliveries -%}
            {%- set keys = (run_query(delta_outbox.request_passed_keys(targets, state, ref("policy_rows"))) | list)[0][0] -%}
            {%- if keys -%}
                {%- do log("replay: warning: " ~ keys ~ " key(s) have later events delivered already: order on those keys is not restored.", info=true) -%}
            {%- endif -%}
        {%- endif -%}

        {%- if checked.dry_run -%}
            {%- do log(kind ~ ": " ~ total.deliveries ~ " deliveries; this is a preview, nothing was written. With dry_run: false it is asked for.", info=true) -%}
        {%- elif not total.deliveries -%}
            {%- do log(kind ~ ": 0 deliveries; nothing was written.", info=true) -%}
        {%- else -%}
            {%- do run_query(delta_outbox.append_command(
                source("outbox", "outbox_commands"), targets, request, delta_outbox.now_utc()
            )) -%}
            {%- do log(kind ~ ": " ~ total.deliveries ~ " deliveries; command " ~ command_id ~ ". See `outbox show " ~ command_id ~ "`.", info=true) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
