{% macro extend_tasks(instances=none, workflow=none, task=none, third_party=none, task_ids=none, role=none, since=none, until=none, to=none, by_seconds=none, reason=none, actor=none, dry_run=true) -%}
    {#-
        Ask for open tasks to expire later: `dbt run-operation extend_tasks --args '{third_party: bank, by_seconds: 14400, ...}'`.

        A relay that attempts a task goes by it at once; an item that is open for an answer stays so under its new end as soon as
        the next relay applies it. What expires at that time or later already is left alone.

        Arguments:
            instances: list of texts, the business keys of instances, or their keys among those of all workflows
            workflow, task, third_party: only open tasks of these
            task_ids: list of texts, only the tasks of these identifiers
            role: only items that it may answer
            since, until: ISO 8601 with an offset; half-open, on when the instance was started
            to: when they expire, ISO 8601 with an offset
            by_seconds: by how much each expires later than now; this or `to`
            reason, actor: one line each; required
            dry_run: false to ask for it
    -#}
    {%- do delta_outbox.perform_task_request("extend", {
        "instances": instances, "workflow": workflow, "task": task, "third_party": third_party,
        "task_ids": task_ids, "role": role, "since": since, "until": until,
        "to": to, "by_seconds": by_seconds, "reason": reason, "actor": actor, "dry_run": dry_run,
    }) -%}
{%- endmacro %}
