{% macro cancel_instances(instances=none, workflow=none, task=none, third_party=none, task_ids=none, role=none, since=none, until=none, reason=none, actor=none, dry_run=true) -%}
    {#-
        Ask for open instances to end by the default exit of their workflow:
        `dbt run-operation cancel_instances --args '{instances: [...], reason: ..., actor: ...}'`.

        The task at which each stands is killed. A call that is under way is finished first; if it decides, its instance goes on.

        Arguments:
            instances: list of texts, the business keys of instances, or their keys among those of all workflows
            workflow, task, third_party: only instances that stand at a task of these
            task_ids: list of texts, only instances that stand at the tasks of these identifiers
            role: only instances that stand at an item that it may answer
            since, until: ISO 8601 with an offset; half-open, on when the instance was started
            reason, actor: one line each; required
            dry_run: false to ask for it
    -#}
    {%- do delta_outbox.perform_task_request("cancel", {
        "instances": instances, "workflow": workflow, "task": task, "third_party": third_party,
        "task_ids": task_ids, "role": role, "since": since, "until": until,
        "reason": reason, "actor": actor, "dry_run": dry_run,
    }) -%}
{%- endmacro %}
