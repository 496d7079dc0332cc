{% macro appends_in_range(transitions) -%}
    {#-
        The appends of a range to the transition log, each with what is wrong with its number. Up to where a purge has
        removed transitions, numbers may be missing.

        Arguments:
            transitions: source, the rows of the range
        Columns: epoch, lane, sequence, first_commit, last_commit, transitions, occurred_at, policy_versions (a set),
            leaves_terminal, interventions; has_wrong_size, whether a claim of it says another size than it has;
            previous_sequence; problem, null if there is none.
    -#}
    with claims as (
        select
            epoch,
            lane,
            sequence,
            claim_id,
            to_state,
            policy_version,
            -- All rows of an append are of one relay, but for claims of items, which `todo` holds.
            nullif(relay_id, 'todo') as relay,
            count(*) as transitions,
            min(coalesce(claim_size, 0)) as least_size,
            max(coalesce(claim_size, 0)) as claim_size,
            min(_commit_version) as first_commit,
            max(_commit_version) as last_commit,
            min(occurred_at) as occurred_at,
            bool_or(from_state in ('PUBLISHED', 'DEAD')) as leaves_terminal,
            bool_or(from_state in ('PUBLISHED', 'DEAD') or reason in ('replayed', 'operator')) as interventions
        from {{ transitions }}
        group by epoch, lane, sequence, claim_id, to_state, policy_version, nullif(relay_id, 'todo')
    ),

    sized as (
        select
            *,
            to_state = 'CLAIMED'
            and (least_size <> claim_size or claim_size <> sum(transitions) over (partition by claim_id, to_state)) as has_wrong_size
        from claims
    ),

    appends as (
        select
            epoch,
            lane,
            sequence,
            min(first_commit) as first_commit,
            max(last_commit) as last_commit,
            -- Where all transitions are checked, no commit is known.
            coalesce(min(first_commit) <> max(last_commit), false)
            or coalesce(min(relay) <> max(relay), false) as is_of_two,
            sum(transitions) as transitions,
            min(occurred_at) as occurred_at,
            collect_set(policy_version) as policy_versions,
            bool_or(leaves_terminal) as leaves_terminal,
            bool_or(interventions) as interventions,
            bool_or(has_wrong_size) as has_wrong_size
        from sized
        group by epoch, lane, sequence
    ),

    followed as (
        select
            a.*,
            coalesce(lag(a.sequence) over in_lane, v.sequence, 0) as previous_sequence,
            coalesce(p.sequence, 0) as purged_sequence,
            lag(a.last_commit) over in_lane as previous_commit
        from appends as a
        left join outbox_checked_lanes as v
            on
                a.epoch = v.epoch
                and a.lane = v.lane
        left join outbox_purged_lanes as p
            on
                a.epoch = p.epoch
                and a.lane = p.lane
        window in_lane as (partition by a.epoch, a.lane order by a.sequence)
    )

    select
        *,
        case
            when sequence <= previous_sequence then 'a number that was used before'
            when is_of_two then 'two appends of one number'
            when sequence > greatest(previous_sequence, purged_sequence) + 1 then 'numbers are missing before it'
            when first_commit < previous_commit then 'appended before its predecessor'
        end as problem
    from followed
{%- endmacro %}
