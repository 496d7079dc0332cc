{% macro perform_task_request(kind, given) -%}
    {#-
        Perform `dbt run-operation extend_tasks|cancel_instances|assign_items|accept_late`: check, refresh, show, and append
        unless it is a dry run. What is shown is JSON in ASCII: data cannot steer the terminal.

        twin: python/delta_outbox/workflow_engine/task_requests.py::MOST_TASKS

        Arguments:
            kind: extend, cancel, assign or accept_late
            given: mapping, name of the argument to what came
    -#}
    {%- if execute -%}
        {%- do delta_outbox.check_logs() -%}
        {%- set checked, problems = {}, [] -%}
        {%- do delta_outbox.check_task_request(kind, given, checked, problems) -%}
        {%- if problems -%}
            {%- do exceptions.raise_compiler_error(kind ~ ": " ~ problems | join("; ") ~ ".") -%}
        {%- endif -%}

        {%- set command_id = invocation_id | replace("-", "") -%}
        {%- set state = ref("outbox_state") ~ " version as of " ~ delta_outbox.refresh_now() -%}
        {%- set started = [] -%}
        {%- if checked.since is not none -%} {%- do started.append("t.started_at >= timestamp_micros(" ~ checked.since ~ ")") -%} {%- endif -%}
        {%- if checked.until is not none -%} {%- do started.append("t.started_at < timestamp_micros(" ~ checked.until ~ ")") -%} {%- endif -%}
        {#- As text in each question, not as views: whoever shares the session may have views of their own. -#}
        {%- set command_kind = "kill" if kind in ["accept_late", "cancel"] else kind -%}
        {%- set request = "(" ~ delta_outbox.task_request_row(command_kind, command_id, checked) ~ ")" -%}
        {%- set targets = "(" ~ delta_outbox.task_targets(
            kind, state, request,
            (checked.instances is not none) | string | lower,
            started | join(" and ") or "true",
            delta_outbox.now_utc()
        ) ~ ")" -%}

        {%- if checked.instances is not none or checked.task_ids is not none -%}
            {%- for row in run_query(delta_outbox.unknown_instances(targets, request)) -%}
                {%- do log(kind ~ ": left out " ~ delta_outbox.ascii_json(
                    {"instance": row["instance"], "refusal": "has no open task"}, ["instance", "refusal"]
                ), info=true) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- set most_shown, most_tasks = 100, 10000 -%}
        {%- set total = namespace(tasks=0, targets=0, rows=0) -%}
        {%- for row in run_query(delta_outbox.task_target_counts(targets, most_shown)) -%}
            {%- set total.tasks = row["all_tasks"] | int -%}
            {%- set total.targets = row["all_targets"] | int -%}
            {%- set total.rows = row["all_rows"] | int -%}
            {%- set what = "" if row["refusal"] is none else "left out " -%}
            {%- do log(kind ~ ": " ~ what ~ delta_outbox.ascii_json(
                row, ["workflow", "task", "third_party", "state", "tasks"] + (["refusal"] if row["refusal"] is not none else [])
            ), info=true) -%}
        {%- endfor -%}
        {%- if total.rows > most_shown -%}
            {%- do log(kind ~ ": and " ~ (total.rows - most_shown) ~ " more lines like these.", info=true) -%}
        {%- endif -%}
        {%- if total.targets > most_tasks -%}
            {%- do exceptions.raise_compiler_error(
                kind ~ ": more than " ~ most_tasks ~ " tasks are meant. Narrow it with `since` and `until`, and ask part after part."
            ) -%}
        {%- endif -%}

        {%- if checked.dry_run -%}
            {%- do log(kind ~ ": " ~ total.tasks ~ " tasks; this is a preview, nothing was written. With dry_run: false it is asked for.", info=true) -%}
        {%- elif not total.tasks -%}
            {%- do log(kind ~ ": 0 tasks; nothing was written.", info=true) -%}
        {%- else -%}
            {%- do run_query(delta_outbox.append_command(
                source("outbox", "outbox_commands"), targets, request, delta_outbox.now_utc()
            )) -%}
            {%- do log(kind ~ ": " ~ total.tasks ~ " tasks; command " ~ command_id ~ ". See `outbox show " ~ command_id ~ "`.", info=true) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
