{% macro broken_by_stranding(span) -%}
    {#-
        The instances of which derivation could not say how they go on: they neither end nor wait for anything.

        Arguments:
            span: mapping of `workflow_range`
    -#}
    select
        {{ delta_outbox.violation(
            {
                "invariant": "'stuck_instances'", "problem": "message", "event_id": "task_id", "occurred_at": "planned_at",
            },
        ) }}
    from outbox_stranded_tasks
    where
        number > {{ span["written_after"] }}
        and number <= {{ span["written_to"] }}
{%- endmacro %}
