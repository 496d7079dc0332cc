{% macro accept_late(instances=none, workflow=none, task=none, third_party=none, task_ids=none, role=none, since=none, until=none, late_task=none, reason=none, actor=none, dry_run=true) -%}
    {#-
        Ask for open instances to go on by an answer that came too late:
        `dbt run-operation accept_late --args '{instances: [...], reason: ..., actor: ...}'`.

        The task at which each stands is ended, and what follows is what the late answer would have led to in time, by the version
        of the instance. Instances that have no late answer, or go on by it already, are left out.

        Arguments:
            instances: list of texts, the business keys of instances, or their keys among those of all workflows
            workflow, task, third_party: only instances that stand at a task of these
            task_ids: list of texts, only instances that stand at the tasks of these identifiers
            role: only instances that stand at an item that it may answer
            since, until: ISO 8601 with an offset; half-open, on when the instance was started
            late_task: only answers to this task of the workflow; to be named where an instance has late answers to several
            reason, actor: one line each; required
            dry_run: false to ask for it
    -#}
    {%- do delta_outbox.perform_task_request("accept_late", {
        "instances": instances, "workflow": workflow, "task": task, "third_party": third_party,
        "task_ids": task_ids, "role": role, "since": since, "until": until,
        "late_task": late_task, "reason": reason, "actor": actor, "dry_run": dry_run,
    }) -%}
{%- endmacro %}
