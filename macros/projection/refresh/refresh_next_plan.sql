{% macro refresh_next_plan(logs, latest) -%}
    {#-
        A part of `refresh_script`: done, if what the projection stands at reaches the latest versions; else append the plan
        that follows, from where the last one ended, or from the beginning for a rebuild.

        Arguments:
            logs: list, the short names of the logs
            latest: mapping of the same names to versions
    -#}
    {%- set statement -%}
        r"insert into {{ source("outbox", "outbox_progress") }}
        {{ delta_outbox.numbered_write("outbox/projection-plan", "__number__") | indent(8) }}
        (writer, number, plan, planned_at, planned_by)
        values (
            'projection', __number__, '__plan__', {{ delta_outbox.now_utc() }},
            {{ delta_outbox.text_literal("dbt " ~ invocation_id) }}
        )"
    {%- endset -%}
    if
        not rebuild_wanted
        {%- for log in logs %}
        and {{ log }}_to >= {{ latest[log] }}
        {%- endfor %}
        and (planned or plan_time >= {{ delta_outbox.now_utc() }} - interval 5 seconds)
    then
        set done = true;
    else
        set plan_text = to_json(
            named_struct(
                'rebuild', rebuild_wanted or plan_number = 0
                {%- for log in logs %},
                '{{ log }}', named_struct(
                    'after', if(rebuild_wanted, -1, {{ log }}_to),
                    'to', greatest(if(rebuild_wanted, -1, {{ log }}_to), {{ latest[log] }})
                )
                {%- endfor %}
            )
        );
        -- Names, numbers and truth values: nothing in the plan ends its literal.
        {{ delta_outbox.refresh_attempt(statement, {
            "number": "cast(greatest(plan_number, applied) + 1 as string)", "plan": "plan_text",
        }) | indent(4) }}
        if not lost then
            set planned = true;
            set expected_number = greatest(plan_number, applied) + 1;
            set rebuild_wanted = false;
        end if;
    end if;
{%- endmacro %}
