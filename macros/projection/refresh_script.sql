{% macro refresh_script(state, fold, rebuild=false) -%}
    {#-
        One SQL script that brings the projection up to the latest versions of the logs; dbt runs it as the model
        `outbox_state`. The relay and the command line take the same steps with the same macros (python/delta_outbox/projection/refresh.py), so that
        they can keep the folded rows between the steps, which a script cannot.

        The projection is a numbered derived writer: plan k (a range of each log) is appended to `outbox_progress` at the
        expected number k, then whoever comes first writes the rows of plan k with version k of Delta's idempotent
        writes. A plan that somebody left unfinished is finished first. A lost race (SQLSTATE 2D521, concurrent
        modification) is not an error: the script looks again. So refreshers beside each other never fail and never write
        a range twice.

        It leaves the session as it is, for the threads of a dbt share it: a number is an option of its INSERT, and what
        several statements read is text in each of them, not a view. A MERGE has no options, so rows that change are
        replaced: together with all that the projection has of the same commits and states, by a condition that the new
        ones fulfil as well, as Delta demands.

        Arguments:
            state: relation, the projection
            fold: SQL text, the macro `fold` with its placeholders, of all news and with `__replaced__`
            rebuild: true to derive everything anew from snapshots of the logs
        Result: one row, the number of the plan that the projection now stands at.
    -#}
    {%- set events = source("outbox", "outbox_events") -%}
    {%- set transitions = source("outbox", "outbox_transitions") -%}
    {%- set commands = source("outbox", "outbox_commands") -%}
    {%- set progress = source("outbox", "outbox_progress") -%}
    {#- The latest version of the events is read last: every transition and command of a plan then finds its event. -#}
    {%- set latest_commands = delta_outbox.latest_version(commands) -%}
    {%- set latest_transitions = delta_outbox.latest_version(transitions) -%}
    {%- set latest_events = delta_outbox.latest_version(events) -%}
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

    declare there bigint;
    declare is_empty boolean;
    declare events_source string;
    declare transitions_source string;
    declare commands_source string;
    declare tails string;
    declare news_days string;
    declare first_id string;
    declare last_id string;
    declare terminal_states string;
    declare arrivals string;
    declare positions string;
    declare touched string;
    declare statement string;
    declare plan_text string;
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

        if plan_number < expected_number or (plan_number < applied and not rebuild_wanted) then
            set plan_number = raise_error('LOG_REWOUND: outbox_progress has lost plans of the projection. After a power cut run outbox refresh --rebuild; after a RESTORE or a DELETE restore it to the version before');
        end if;
        -- Nothing says where the projection stands: it was restored, or made anew.
        if applied = 0 and plan_number > 0 and not planned then
            set rebuild_wanted = true;
        end if;

        -- Another refresher has planned further meanwhile, or a log has lost what was planned: what comes in its place would be
        -- taken for it.
        if
            not rebuild_wanted
            and (events_to > {{ latest_events }} or transitions_to > {{ latest_transitions }} or commands_to > {{ latest_commands }})
        then
            begin
                declare exit handler for sqlexception begin
                    set plan_number = raise_error('COMMITS_LOST: a log has lost commits that the projection was derived from. Run outbox refresh --rebuild');
                end;
                execute immediate 'select count(*) from {{ events }} version as of ' || events_to into there;
                execute immediate 'select count(*) from {{ transitions }} version as of ' || transitions_to into there;
                execute immediate 'select count(*) from {{ commands }} version as of ' || commands_to into there;
            end;
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
            set tails = replace(replace(replace(replace(
                r"with
                outbox_events_tail as (
                    {{ delta_outbox.events_tail_select('__events__', '__arrival__') | indent(20) }}
                ),

                outbox_transitions_tail as (
                    {{ delta_outbox.transitions_tail_select('__transitions__') | indent(20) }}
                ),

                outbox_commands_tail as (
                    {{ delta_outbox.commands_tail_select('__commands__', '__arrival__') | indent(20) }}
                )",
                '__arrival__', if(plan_rebuilds, '_metadata.row_commit_version', '_commit_version')),
                '__events__', events_source),
                '__transitions__', transitions_source),
                '__commands__', commands_source);

            -- A new outbox has nothing to fold, which is said sooner than planned.
            set is_empty = false;
            if plan_rebuilds then
                execute immediate 'select not exists (select 1 from ' || events_source || ')' into is_empty;
            end if;
            set (news_days, first_id, last_id) = (select 'false', '', '');
            if events_to > events_after and not plan_rebuilds then
                execute immediate tails || r"
                    select
                        ({{ delta_outbox.days_of_news("outbox_events_tail") | indent(24) }}),
                        coalesce(hex(min(event_id)), ''),
                        coalesce(hex(max(event_id)), '')
                    from outbox_events_tail"
                into news_days, first_id, last_id;
            end if;
            -- Only a replay leaves a terminal state, and only a kill may let the key of a dead event go, so only then are
            -- the partitions of terminal states touched.
            set (terminal_states, arrivals, positions) = (select '', 'false', '');
            if (transitions_to > transitions_after or commands_to > commands_after) and not plan_rebuilds then
                execute immediate replace(tails || r",
                    outbox_moves as (
                        select
                            arrival,
                            epoch,
                            lane,
                            sequence,
                            if(reason = 'replayed' and from_state in ('PUBLISHED', 'DEAD'), from_state, null) as terminal
                        from __transitions__
                    ),

                    outbox_touched as (
                        select arrival, terminal from outbox_moves
                        union all
                        select arrival, 'DEAD' from outbox_commands_tail where kind = 'kill' and event_id is not null
                    )

                    select
                        (select array_join(collect_set(', \'' || terminal || '\''), '') from outbox_touched),
                        ({{ delta_outbox.ranges_of(
                            "outbox_touched", "arrival", 1, "concat('arrival between ', {first}, ' and ', {last})"
                        ) | indent(24) }}),
                        (
                            select
                                array_join(collect_list(
                                    ' or (epoch = ' || epoch || ' and lane = ' || lane
                                    || ' and sequence between ' || first || ' and ' || last || ')'
                                ), '')
                            from (
                                select epoch, lane, min(sequence) as first, max(sequence) as last
                                from outbox_moves
                                group by epoch, lane
                            )
                        )",
                    '__transitions__', transitions_source)
                into terminal_states, arrivals, positions;
            end if;
            -- What is read of the projection, and replaced. Rows that leave a state fulfil it by their new position, which
            -- no earlier row has; one that has it all the same, in a log that was tampered with, is read and stays.
            set touched = if(
                arrivals = 'false',
                'false',
                '(' || arrivals || ') and (state in (\'PENDING\', \'CLAIMED\'' || terminal_states || ')' || positions || ')'
            );

            set statement = replace(replace(replace(replace(replace(replace(
                r"insert into {{ state }}
                {{ delta_outbox.numbered_write("outbox/projection", "__number__", "outbox/projection/__number__") | indent(16) }}
                replace where __replacing__
                __tails__,

                outbox_known_events as (
                    {{ delta_outbox.known_events_select(events) | indent(20) }}
                )

                select {{ delta_outbox.state_columns() | join(", ") }} from (__fold__)",
                '__any_news__', if(news_days = 'false', 'false', 'true')),
                '__events_to__', cast(events_to as string)),
                '__events_after__', cast(events_after as string)),
                '__news_days__', news_days),
                '__first_id__', 'string(x\'' || first_id || '\')'),
                '__last_id__', 'string(x\'' || last_id || '\')');
            set statement = replace(replace(replace(replace(replace(
                statement,
                '__number__', cast(plan_number as string)),
                '__tails__', tails),
                '__fold__', if(is_empty, r"select * from {{ state }} where false", fold_text)),
                '__replaced__', touched),
                '__replacing__', if(plan_rebuilds, 'true', concat_ws(' or ', 'arrival > ' || events_after, nullif(touched, 'false'))));
            begin
                declare exit handler for sqlstate '2D521' begin set lost = true; end;
                execute immediate statement;
            end;
            if not lost then
                set applied = plan_number;
            end if;
        end if;

        if not lost then
            if
                not rebuild_wanted
                and events_to >= {{ latest_events }}
                and transitions_to >= {{ latest_transitions }}
                and commands_to >= {{ latest_commands }}
                and (planned or plan_time >= {{ delta_outbox.now_utc() }} - interval 5 seconds)
            then
                set done = true;
            else
                set plan_text = to_json(
                    named_struct(
                        'rebuild', rebuild_wanted or plan_number = 0,
                        'events', named_struct(
                            'after', if(rebuild_wanted, -1, events_to),
                            'to', greatest(if(rebuild_wanted, -1, events_to), {{ latest_events }})
                        ),
                        'transitions', named_struct(
                            'after', if(rebuild_wanted, -1, transitions_to),
                            'to', greatest(if(rebuild_wanted, -1, transitions_to), {{ latest_transitions }})
                        ),
                        'commands', named_struct(
                            'after', if(rebuild_wanted, -1, commands_to),
                            'to', greatest(if(rebuild_wanted, -1, commands_to), {{ latest_commands }})
                        )
                    )
                );
                set statement = replace(replace(
                    r"insert into {{ progress }}
                    {{ delta_outbox.numbered_write("outbox/projection-plan", "__number__") | indent(20) }}
                    (writer, number, plan, planned_at, planned_by)
                    values (
                        'projection', __number__, '__plan__', {{ delta_outbox.now_utc() }},
                        {{ delta_outbox.text_literal("dbt " ~ invocation_id) }}
                    )",
                    '__number__', cast(greatest(plan_number, applied) + 1 as string)),
                    '__plan__', plan_text);  -- names, numbers and truth values: nothing ends the literal
                begin
                    declare exit handler for sqlstate '2D521' begin set lost = true; end;
                    execute immediate statement;
                end;
                if not lost then
                    set planned = true;
                    set expected_number = greatest(plan_number, applied) + 1;
                    set rebuild_wanted = false;
                end if;
            end if;
        end if;
    end while;
    select plan_number as number;
end
{%- endmacro %}
