{% macro moved_tasks() -%}
    {#-
        The tasks of which the first kill in the log says that their instance goes on elsewhere than at the default exit.

        Columns: event_id, arrival, command_id; late_task and late_outcome, of a late answer; to_plan and to_task, of another
        version.
    -#}
    select
        event_id,
        arrival,
        kill_command_id as command_id,
        get_json_object(kill_arguments, '$.late.task') as late_task,
        get_json_object(kill_arguments, '$.late.outcome') as late_outcome,
        try_cast(get_json_object(kill_arguments, '$.to.plan') as bigint) as to_plan,
        get_json_object(kill_arguments, '$.to.task') as to_task
    from ({{ delta_outbox.asked_of_tasks() | indent(4) }})
    where {{ delta_outbox.is_move("kill_arguments") }}
{%- endmacro %}
