{% macro checked_transitions_select(transitions, state, checked_events, checked) -%}
    {#-
        The rows of the transition log in the range of a verification, each beside where its delivery stood before it.

        Arguments:
            transitions: relation, the transition log
            state: relation, the projection
            checked_events: relation, the model of this name
            checked: the verification
    -#}
    with news as (
        select
            *,
            lag(
                struct(to_state as state, reason, lifecycle, attempt, publish_attempts, crashes, claim_id, epoch, sequence)
            ) over (
                partition by event_id, arrival, destination
                order by epoch, sequence, _commit_version
            ) as last
        from {{ delta_outbox.rows_in_range(transitions, checked["transitions_after"] | int, checked["transitions_to"] | int) }}
    ),

    -- Where the deliveries stood at the verified position. Only what leaves a terminal state comes from one.
    verified as (
        select
            event_id,
            arrival,
            destination,
            struct(
                state, reason, lifecycle, attempts as attempt, publish_attempts, crashes, claim_id, epoch, sequence
            ) as last
        from {{ delta_outbox.as_of_version(state, checked["state_before"] | int) }}
        where state in {{ delta_outbox.left_states(checked) }}
    ),

    began as (
        select
            news.*,
            coalesce(
                news.last,
                verified.last,
                case
                    when events.event_id is not null
                        then struct(
                            'PENDING' as state,
                            cast(null as string) as reason,
                            0 as lifecycle,
                            0 as attempt,
                            0 as publish_attempts,
                            0 as crashes,
                            cast(null as string) as claim_id,
                            0 as epoch,
                            cast(0 as bigint) as sequence
                        )
                end
            ) as previous,
            news.last is null and (verified.destination = '' or events.event_id is not null) as fixes_destination
        from news
        left join verified
            on
                news.last is null
                and news.event_id = verified.event_id
                and news.arrival = verified.arrival
                and (news.destination = verified.destination or verified.destination = '')
        left join {{ checked_events }} as events
            on
                news.last is null
                and events.is_event
                and news.event_id = events.event_id
                and news.arrival = events.arrival
    ),

    final as (
        select
            epoch,
            lane,
            sequence,
            event_id,
            arrival,
            destination,
            lifecycle,
            attempt,
            from_state,
            to_state,
            reason,
            claim_id,
            relay_id,
            lease_expires_at,
            claim_size,
            publish_attempts,
            crashes,
            occurred_at,
            actor,
            command_id,
            policy_version,
            previous.state as previous_state,
            previous.reason as previous_reason,
            previous.lifecycle as previous_lifecycle,
            previous.attempt as previous_attempt,
            previous.publish_attempts as previous_publish_attempts,
            previous.crashes as previous_crashes,
            previous.claim_id as previous_claim_id,
            previous.epoch as previous_epoch,
            previous.sequence as previous_sequence,
            coalesce(fixes_destination, false) as fixes_destination,
            _commit_version as commit_version
        from began
    )

    select * from final
{%- endmacro %}
