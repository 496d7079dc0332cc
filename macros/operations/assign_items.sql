{% macro assign_items(to=none, task_ids=none, instances=none, workflow=none, task=none, role=none, since=none, until=none, only_unassigned=false, reason=none, actor=none, dry_run=true) -%}
    {#-
        Say who takes care of open items: `dbt run-operation assign_items --args '{to: ann, workflow: orders, role: support, ...}'`.

        It holds as soon as it is in the command log; no relay has to apply it.

        Arguments:
            to: text, the person; empty to give the items back
            task_ids: list of texts, the identifiers of items
            instances: list of texts, the business keys of instances, or their keys among those of all workflows
            workflow, task: only items of these
            role: only items that it may answer
            since, until: ISO 8601 with an offset; half-open, on when the instance was started
            only_unassigned: true to leave alone what somebody else holds
            reason, actor: one line each; required
            dry_run: false to write it
    -#}
    {%- do delta_outbox.perform_task_request("assign", {
        "instances": instances, "task_ids": task_ids, "workflow": workflow, "task": task, "role": role, "only_items": true,
        "since": since, "until": until, "assignee": to, "only_unassigned": only_unassigned,
        "reason": reason, "actor": actor, "dry_run": dry_run,
    }) -%}
{%- endmacro %}
