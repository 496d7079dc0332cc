{% macro refresh_script(state, fold, rebuild=false) -%}
    {#-
        One SQL script that brings the projection up to the heads of the logs; dbt runs it as the model `outbox_state`. The
        relay and the command line take the same steps with the same macros (python/delta_outbox/refreshing.py), so that
        they can keep the folded rows between the steps, which a script cannot.

        The projection is a numbered derived writer: plan k (a range of each log) is appended to `outbox_progress` at the
        expected number k, then whoever comes first writes the rows of plan k with version k of Delta's idempotent
        writes. A plan that somebody left unfinished is finished first. A lost race (SQLSTATE 2D521, concurrent
        modification) is not an error: the script looks again. So refreshers beside each other never fail and never write
        a range twice.

        Arguments:
            state: relation, the projection
            fold: SQL text, the macro `fold` with its placeholder
            rebuild: true to derive everything anew from snapshots of the logs
        Result: one row, the number of the plan that the projection now stands at.
    -#}
    {%- set events = source("outbox", "outbox_events") -%}
    {%- set transitions = source("outbox", "outbox_transitions") -%}
    {%- set commands = source("outbox", "outbox_commands") -%}
    {%- set progress = source("outbox", "outbox_progress") -%}
    {#- The head of the events is read last: every transition and command of a plan then finds its event. -#}
    {%- set commands_head = delta_outbox.head_version(commands) -%}
    {%- set transitions_head = delta_outbox.head_version(transitions) -%}
    {%- set events_head = delta_outbox.head_version(events) -%}
begin
    declare attempts int default 0;
    declare applied bigint default {{ delta_outbox.applied_plan(state) }};
    declare done boolean default false;
    declare lost boolean default false;
    declare planned boolean default false;
    declare rebuild_wanted boolean default {{ rebuild | string | lower }};

    declare expected_number bigint default 0;
    declare plan_number bigint;
    declare plan_time timestamp;
    declare plan_rebuilds boolean;
    declare events_after bigint;
    declare events_to bigint;
    declare transitions_after bigint;
    declare transitions_to bigint;
    declare commands_after bigint;
    declare commands_to bigint;

    declare is_empty boolean;
    declare events_source string;
    declare transitions_source string;
    declare commands_source string;
    declare news_days string;
    declare first_id string;
    declare last_id string;
    declare from_states string;
    declare first_arrival bigint;
    declare last_arrival bigint;
    declare is_replayed boolean;
    declare is_killed boolean;
    declare fold_text string default r"
{{ fold }}
";

    while not done do
        set attempts = attempts + 1;
        if attempts > 100 then
            set plan_number = raise_error('outbox_state: 100 attempts to refresh lost against other writers');
        end if;
        set lost = false;

        set (
            plan_number, plan_time, plan_rebuilds,
            events_after, events_to, transitions_after, transitions_to, commands_after, commands_to
        ) = (
            select
                coalesce(max(number), 0),
                max(planned_at),
                coalesce(cast(get_json_object(max(plan), '$.rebuild') as boolean), false),
                coalesce(cast(get_json_object(max(plan), '$.events.after') as bigint), -1),
                coalesce(cast(get_json_object(max(plan), '$.events.to') as bigint), -1),
                coalesce(cast(get_json_object(max(plan), '$.transitions.after') as bigint), -1),
                coalesce(cast(get_json_object(max(plan), '$.transitions.to') as bigint), -1),
                coalesce(cast(get_json_object(max(plan), '$.commands.after') as bigint), -1),
                coalesce(cast(get_json_object(max(plan), '$.commands.to') as bigint), -1)
            from {{ progress }}
            where
                writer = 'projection'
                and number = (select max(number) from {{ progress }} where writer = 'projection')
        );

        if plan_number < expected_number then
            set plan_number = raise_error('LOG_REWOUND: outbox_progress has lost plans of the projection; restore it to the version before');
        end if;
        -- Nothing says where the projection stands: it was restored, or made anew.
        if applied = 0 and plan_number > 0 and not planned then
            set rebuild_wanted = true;
        end if;

        -- Write the rows of the newest plan, whoever made it. Where somebody was faster, Delta skips them. A rebuild needs
        -- none of them.
        if
            plan_number > applied
            and not rebuild_wanted
            and (
                plan_rebuilds
                or events_to > events_after
                or transitions_to > transitions_after
                or commands_to > commands_after
            )
        then
            if plan_rebuilds then
                set events_source = '{{ events }} version as of ' || events_to;
                set transitions_source = '{{ transitions }} version as of ' || transitions_to;
                set commands_source = '{{ commands }} version as of ' || commands_to;
            else
                set events_source = case
                    when events_to > events_after
                        then 'table_changes(\'{{ events }}\', ' || (events_after + 1) || ', ' || events_to || ') where _change_type = \'insert\''
                    else '{{ delta_outbox.no_changes(events) }}'
                end;
                set transitions_source = case
                    when transitions_to > transitions_after
                        then 'table_changes(\'{{ transitions }}\', ' || (transitions_after + 1) || ', ' || transitions_to || ') where _change_type = \'insert\''
                    else '{{ delta_outbox.no_changes(transitions) }}'
                end;
                set commands_source = case
                    when commands_to > commands_after
                        then 'table_changes(\'{{ commands }}\', ' || (commands_after + 1) || ', ' || commands_to || ') where _change_type = \'insert\''
                    else '{{ delta_outbox.no_changes(commands) }}'
                end;
            end if;
            execute immediate 'create or replace temporary view outbox_events_tail as '
                || replace(
                    replace(
                        r"{{ delta_outbox.events_tail_select('__source__', '__arrival__') }}",
                        '__arrival__', if(plan_rebuilds, '_metadata.row_commit_version', '_commit_version')
                    ),
                    '__source__', events_source
                );
            execute immediate 'create or replace temporary view outbox_transitions_tail as '
                || replace(r"{{ delta_outbox.transitions_tail_select('__source__') }}", '__source__', transitions_source);
            execute immediate 'create or replace temporary view outbox_commands_tail as '
                || replace(
                    replace(
                        r"{{ delta_outbox.commands_tail_select('__source__', '__position__') }}",
                        '__position__', if(plan_rebuilds, '_metadata.row_commit_version', '_commit_version')
                    ),
                    '__source__', commands_source
                );

            if events_to > events_after and not plan_rebuilds then
                set news_days = ({{ delta_outbox.days_of_news("outbox_events_tail") | indent(16) }});
                set (first_id, last_id) = (
                    select hex(min(event_id)), hex(max(event_id)) from outbox_events_tail
                );
            end if;
            -- Only a replay leaves a terminal state, and only a kill may let the key of a dead event go, so only then are
            -- the partitions of terminal states touched.
            set (first_arrival, last_arrival, is_replayed, is_killed) = (
                select
                    coalesce(min(arrival), 0),
                    coalesce(max(arrival), -1),
                    coalesce(bool_or(reason = 'replayed'), false),
                    coalesce(bool_or(is_kill), false)
                from (
                    select arrival, reason, false as is_kill from outbox_transitions_tail
                    union all
                    select arrival, cast(null as string), true from outbox_commands_tail
                    where kind = 'kill' and event_id is not null
                )
                where not plan_rebuilds
            );
            set from_states = case
                when plan_rebuilds then '\'\''
                when is_replayed then '\'PENDING\', \'CLAIMED\', \'PUBLISHED\', \'DEAD\''
                when is_killed then '\'PENDING\', \'CLAIMED\', \'DEAD\''
                else '\'PENDING\', \'CLAIMED\''
            end;
            execute immediate 'create or replace temporary view outbox_known_events as '
                || replace(replace(replace(replace(replace(replace(
                    r"{{ delta_outbox.known_events_select(events) }}",
                    '__any_news__', if(plan_rebuilds or news_days is null, 'false', 'true')),
                    '__events_to__', cast(events_to as string)),
                    '__events_after__', cast(events_after as string)),
                    '__news_days__', coalesce(news_days, 'false')),
                    '__first_id__', 'string(x\'' || coalesce(first_id, '') || '\')'),
                    '__last_id__', 'string(x\'' || coalesce(last_id, '') || '\')');

            -- A new outbox has nothing to fold, which is said sooner than planned.
            set is_empty = plan_rebuilds and not exists (select 1 from outbox_events_tail);
            execute immediate 'create or replace temporary view outbox_folded as '
                || if(
                    is_empty,
                    'select * from {{ state }} where false',
                    replace(replace(replace(replace(
                        fold_text,
                        '__with_untouched__', 'false'),
                        '__from_states__', from_states),
                        '__first_arrival__', cast(first_arrival as string)),
                        '__last_arrival__', cast(last_arrival as string))
                );

            execute immediate 'set spark.databricks.delta.write.txnAppId = outbox/projection';
            execute immediate 'set spark.databricks.delta.write.txnVersion = ' || plan_number;
            -- Readers find out from the commit which plan a version of the projection stands at.
            execute immediate 'set spark.databricks.delta.commitInfo.userMetadata = outbox/projection/' || plan_number;
            -- A merge reads its source more than once: let Delta keep it, fold once. (A cached table would be computed
            -- anew after every later append to the logs.)
            execute immediate 'set spark.databricks.delta.merge.materializeSource = all';
            begin
                declare exit handler for sqlstate '2D521' begin set lost = true; end;
                if plan_rebuilds then
                    {{ delta_outbox.overwrite_state(state, "outbox_folded") }};
                else
                    execute immediate replace(replace(replace(
                        r"{{ delta_outbox.merge_into_state(
                            state, 'select * from outbox_folded', '__from_states__', '__first_arrival__', '__last_arrival__'
                        ) }}",
                        '__from_states__', from_states),
                        '__first_arrival__', cast(first_arrival as string)),
                        '__last_arrival__', cast(last_arrival as string));
                end if;
            end;
            execute immediate 'reset spark.databricks.delta.write.txnAppId';
            execute immediate 'reset spark.databricks.delta.write.txnVersion';
            execute immediate 'reset spark.databricks.delta.commitInfo.userMetadata';
            execute immediate 'reset spark.databricks.delta.merge.materializeSource';
            if not lost then
                set applied = plan_number;
            end if;
        end if;

        if not lost then
            if
                not rebuild_wanted
                and events_to >= {{ events_head }}
                and transitions_to >= {{ transitions_head }}
                and commands_to >= {{ commands_head }}
                and (planned or plan_time >= {{ delta_outbox.now_utc() }} - interval 5 seconds)
            then
                set done = true;
            else
                execute immediate 'set spark.databricks.delta.write.txnAppId = outbox/projection-plan';
                execute immediate 'set spark.databricks.delta.write.txnVersion = ' || (plan_number + 1);
                begin
                    declare exit handler for sqlstate '2D521' begin set lost = true; end;
                    insert into {{ progress }} (writer, number, plan, planned_at, planned_by)
                    select
                        'projection',
                        plan_number + 1,
                        to_json(
                            named_struct(
                                'rebuild', rebuild_wanted or plan_number = 0,
                                'events', named_struct(
                                    'after', if(rebuild_wanted, -1, events_to),
                                    'to', greatest(events_to, {{ events_head }})
                                ),
                                'transitions', named_struct(
                                    'after', if(rebuild_wanted, -1, transitions_to),
                                    'to', greatest(transitions_to, {{ transitions_head }})
                                ),
                                'commands', named_struct(
                                    'after', if(rebuild_wanted, -1, commands_to),
                                    'to', greatest(commands_to, {{ commands_head }})
                                )
                            )
                        ),
                        {{ delta_outbox.now_utc() }},
                        {{ delta_outbox.text_literal("dbt " ~ invocation_id) }};
                end;
                execute immediate 'reset spark.databricks.delta.write.txnAppId';
                execute immediate 'reset spark.databricks.delta.write.txnVersion';
                if not lost then
                    set planned = true;
                    set expected_number = plan_number + 1;
                    set rebuild_wanted = false;
                end if;
            end if;
        end if;
    end while;
    select plan_number as number;
end
{%- endmacro %}
