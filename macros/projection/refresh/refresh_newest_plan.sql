{% macro refresh_newest_plan(logs) -%}
    {#-
        A part of `refresh_script`: read the newest plan of the projection; number 0 if there is none.

        Arguments:
            logs: list, the short names of the logs
    -#}
    {%- set progress = source("outbox", "outbox_progress") -%}
    set (
        plan_number, plan_time, plan_rebuilds
        {%- for log in logs %}, {{ log }}_after, {{ log }}_to{% endfor %}
    ) = (
        select
            coalesce(max(number), 0),
            max(planned_at),
            coalesce(cast(get_json_object(max(plan), '$.rebuild') as boolean), false)
            {%- for log in logs %},
            coalesce(cast(get_json_object(max(plan), '$.{{ log }}.after') as bigint), -1),
            coalesce(cast(get_json_object(max(plan), '$.{{ log }}.to') as bigint), -1)
            {%- endfor %}
        from {{ progress }}
        where
            writer = 'projection'
            and number = (select max(number) from {{ progress }} where writer = 'projection')
    );
{%- endmacro %}
