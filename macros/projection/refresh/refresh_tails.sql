{% macro refresh_tails(logs) -%}
    {#-
        A part of `refresh_script`: what the logs hold in the ranges of the plan, as the head of a query (`with ...`) with the
        tails that the fold reads. From the change feeds; for a rebuild, from snapshots.

        Arguments:
            logs: list, the short names of the logs
    -#}
    if plan_rebuilds then
        {%- for log in logs %}
        set {{ log }}_source = '{{ source("outbox", "outbox_" ~ log) }} version as of ' || {{ log }}_to;
        {%- endfor %}
    else
        {%- for log in logs %}
        set {{ log }}_source = case
            when {{ log }}_to > {{ log }}_after
                then 'table_changes(\'{{ source("outbox", "outbox_" ~ log) }}\', ' || ({{ log }}_after + 1) || ', ' || {{ log }}_to || ') where _change_type = \'insert\''
            else '{{ delta_outbox.no_changes(source("outbox", "outbox_" ~ log)) }}'
        end;
        {%- endfor %}
    end if;
    {%- set tails -%}
        r"with
        outbox_events_tail as (
            {{ delta_outbox.events_tail_select('__events__', '__arrival__') | indent(12) }}
        ),

        outbox_transitions_tail as (
            {{ delta_outbox.transitions_tail_select('__transitions__') | indent(12) }}
        ),

        outbox_commands_tail as (
            {{ delta_outbox.commands_tail_select('__commands__', '__arrival__') | indent(12) }}
        )"
    {%- endset %}
    set tails = {{ delta_outbox.filled(tails, {
        "arrival": "if(plan_rebuilds, '_metadata.row_commit_version', '_commit_version')",
        "events": "events_source", "transitions": "transitions_source", "commands": "commands_source",
    }) }};
    -- A new outbox has nothing to fold, which is said sooner than planned.
    set is_empty = false;
    if plan_rebuilds then
        execute immediate 'select not exists (select 1 from ' || events_source || ')' into is_empty;
    end if;
{%- endmacro %}
