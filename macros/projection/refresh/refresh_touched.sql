{% macro refresh_touched() -%}
    {#-
        A part of `refresh_script`: the condition on what is read of the projection, and replaced.

        Only a replay leaves a terminal state, and only a kill may let the key of a dead event go, so only then are the
        partitions of terminal states touched. Rows that leave a state fulfil the condition by their new position, which no
        earlier row has; one that has it all the same, in a log that was tampered with, is read and stays.

        twin: python/delta_outbox/projection/tails.py::from_states
    -#}
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
                ) | indent(16) }}),
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
    set touched = if(
        arrivals = 'false',
        'false',
        '(' || arrivals || ') and (state in (\'PENDING\', \'CLAIMED\'' || terminal_states || ')' || positions || ')'
    );
{%- endmacro %}
