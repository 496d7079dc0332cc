{% macro command_status(command, transitions, state, purged, since, applied) -%}
    {#-
        What became of each delivery that a command names; computed, never stored.

        done: a transition carries the command, or the projection shows the kill of a dead event. refused: the delivery has
        moved on without it, or was purged before. waiting: else.

        Arguments:
            command: relation, the command's rows of the command log, and version, the commit of each
            transitions: relation, the transition log
            state: relation, the projection, refreshed
            purged: relation, what is left of purged deliveries
            since: SQL expression, a date; the log is not read before it
            applied: SQL expression, the version of the command log up to which commands have been applied
    -#}
    with applied as (
        select distinct
            event_id,
            arrival,
            destination
        from {{ transitions }}
        where
            occurred_date >= {{ since }}
            and command_id in (select command_id from {{ command }})
    )

    -- A command from before the first claim names no destination, and means each of them by itself.
    select distinct
        c.event_id,
        c.arrival,
        coalesce(s.destination, p.destination, c.destination) as destination,
        c.lifecycle,
        c.arguments,
        case
            when c.kind = 'cancel' then 'done'
            when d.event_id is not null or array_contains(p.command_ids, c.command_id) then 'done'
            when p.event_id is not null then 'refused'
            when s.event_id is null then 'waiting'
            when c.kind = 'kill' and s.state = 'DEAD' and coalesce(s.kill_command_id = c.command_id, false) then 'done'
            when s.lifecycle <> c.lifecycle then 'refused'
            when c.kind in ('replay', 'complete') and c.version <= {{ applied }} then 'refused'
            when c.kind = 'kill' and s.state in ('PUBLISHED', 'DEAD') then 'refused'
            when c.kind = 'extend' then {{ delta_outbox.status_of_extension("c", "s", applied) | indent(16) }}
            when c.kind = 'assign' then {{ delta_outbox.status_of_assignment("c", "s") | indent(16) }}
            when c.kind = 'release' and coalesce(s.claim_id <> get_json_object(c.arguments, '$.claim_id'), true)
                then 'refused'
            else 'waiting'
        end as status
    from {{ command }} as c
    left join {{ state }} as s
        on
            c.event_id = s.event_id
            and c.arrival = s.arrival
            and coalesce(c.destination, '') in ('', s.destination)
    left join {{ purged }} as p
        on
            c.event_id = p.event_id
            and c.arrival = p.arrival
            and coalesce(c.destination, '') in ('', p.destination)
    left join applied as d
        on
            c.event_id = d.event_id
            and c.arrival = d.arrival
            and d.destination = coalesce(s.destination, p.destination)
{%- endmacro %}
