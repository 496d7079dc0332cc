{% macro checked_transitions_select(purged, range) -%}
    {#-
        The transitions of a range, each beside where its delivery stood before it: after its last transition in the range,
        else as the projection showed it at the verified position, else as a new event. Those of purged events are left out once
        the deliveries of each claim are counted.

        Arguments:
            purged: relation, what is left of purged deliveries
            range: the mapping of `invariant_range`
        Columns: those of the log; previous, a struct (null where no delivery was open under this name); fixes_destination,
            whether the row names the destination of an event for the first time, and fixed_first, whether no earlier append
            did; is_last, whether the range holds no later one of the delivery; repeats_append, whether its append holds
            the delivery twice; deliveries, how many rows have the same claim_id and state (null: its claim has the size that it
            says).
    -#}
    {%- set stand = "struct<state:string,lifecycle:int,attempt:int,publish_attempts:int,crashes:int,claim_id:string>" -%}
    with news as (
        select
            *,
            struct(epoch, sequence) as at,
            lag(
                named_struct(
                    'state', to_state, 'lifecycle', lifecycle, 'attempt', attempt,
                    'publish_attempts', publish_attempts, 'crashes', crashes, 'claim_id', claim_id
                )
            ) over life as last,
            lead(sequence) over life is null as is_last,
            coalesce(lag(struct(epoch, lane, sequence)) over life = struct(epoch, lane, sequence), false) as repeats_append
        from outbox_doubtful_transitions
        window life as (partition by event_id, arrival, destination order by epoch, sequence, _commit_version, lane)
    ),

    began as (
        select
            event_id,
            arrival,
            destination,
            named_struct(
                'state', state, 'lifecycle', lifecycle, 'attempt', attempts,
                'publish_attempts', publish_attempts, 'crashes', crashes, 'claim_id', claim_id
            ) as stand
        from outbox_began
        union all
        select
            event_id,
            arrival,
            '' as destination,
            from_json(
                '{"state":"PENDING","lifecycle":0,"attempt":0,"publish_attempts":0,"crashes":0}', '{{ stand }}'
            ) as stand
        from outbox_checked_events
    ),

    joined as (
        select /*+ merge(b) */
            n.*,
            coalesce(n.last, b.stand) as previous,
            n.last is null and coalesce(b.destination = '', false) as fixes_destination
        from news as n
        left join began as b
            on
                n.last is null
                and n.event_id = b.event_id
                and n.arrival = b.arrival
                and b.destination in (n.destination, '')
    ),

    counted as (
        select
            * except (last),
            fixes_destination and at = min(if(fixes_destination, at, null)) over (partition by event_id, arrival) as fixed_first,
            {{ "count(*) over (partition by claim_id, to_state)" if range["has_wrong_size"] else "claim_size" }} as deliveries
        from joined
    )

    select {{ "/*+ merge(p) */ " if range["purged"] }}c.*
    from counted as c
    {%- if range["purged"] %}
    left anti join {{ purged }} as p
        on
            c.event_id = p.event_id
            and c.arrival = p.arrival
    {%- endif %}
{%- endmacro %}
