{% macro refresh_script(state, fold, rebuild=false) -%}
    {#-
        One SQL script that brings the projection up to the latest versions of the logs; dbt runs it as the model
        `outbox_state`. The relay and the command line take the same steps with the same macros in Python, so that they can
        keep the folded rows between the steps, which a script cannot.

        The projection is a numbered derived writer: plan k (a range of each log) is appended to `outbox_progress` at the
        expected number k, then whoever comes first writes the rows of plan k with version k of Delta's idempotent
        writes. A plan that somebody left unfinished is finished first. A lost race (SQLSTATE 2D521, concurrent
        modification) is not an error: the script looks again. So refreshers beside each other never fail and never write
        a range twice.

        It leaves the session as it is, for the threads of a dbt share it: a number is an option of its INSERT, and what
        several statements read is text in each of them, not a view.

        twin: python/delta_outbox/projection/refresh.py::Refreshing

        Arguments:
            state: relation, the projection
            fold: SQL text, the macro `fold_all` with its placeholders
            rebuild: true to derive everything anew from snapshots of the logs
        Result: one row, the number of the plan that the projection now stands at.
    -#}
    {%- set logs = ["events", "transitions", "commands"] -%}
    {#- The latest version of the events is read last: every transition and command of a plan then finds its event. -#}
    {%- set latest = {} -%}
    {%- for log in logs | reverse -%} {%- do latest.update({log: delta_outbox.latest_version(source("outbox", "outbox_" ~ log))}) -%} {%- endfor -%}
begin
    {{ delta_outbox.refresh_variables(logs, delta_outbox.applied_plan(state), fold, rebuild) | indent(4) }}

    while not done do
        set attempts = attempts + 1;
        if attempts > 100 then
            set plan_number = raise_error('outbox_state: 100 attempts to refresh lost against other writers');
        end if;
        set lost = false;

        {{ delta_outbox.refresh_newest_plan(logs) | indent(8) }}
        {{ delta_outbox.refresh_checks(logs, latest) | indent(8) }}

        -- Write the rows of the newest plan, whoever made it. A rebuild needs none of them.
        if
            plan_number > applied
            and not rebuild_wanted
            and (plan_rebuilds{% for log in logs %} or {{ log }}_to > {{ log }}_after{% endfor %})
        then
            {{ delta_outbox.refresh_tails(logs) | indent(12) }}
            {{ delta_outbox.refresh_news() | indent(12) }}
            {{ delta_outbox.refresh_touched() | indent(12) }}
            {{ delta_outbox.refresh_rows(state) | indent(12) }}
        end if;

        if not lost then
            {{ delta_outbox.refresh_next_plan(logs, latest) | indent(12) }}
        end if;
    end while;
    select plan_number as number;
end
{%- endmacro %}
