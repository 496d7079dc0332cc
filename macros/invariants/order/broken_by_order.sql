{% macro broken_by_order() -%}
    {#-
        The deliveries that were published while an earlier one of their order scope was open all the time from their claim
        to their result: the earlier one was overtaken.

        An order scope is the ordering key, or the key within a destination, of events whose policy is strict under the
        version that decided. A dead event is open under `on_dead = hold`. What ends because an operator asked or because of
        its age holds nobody up, nor does what is past its age. For each group and each append from which earlier deliveries
        were open again (after a replay), one pass in order of position finds the one that was open longest: no join of all
        with all, for a key may have very many events.
    -#}
    select
        {{ delta_outbox.violation(
            {
                "invariant": "'overtaken_events'", "problem": "'published while an earlier event of its key was open'",
                "event_id": "event_id", "arrival": "arrival", "destination": "destination",
                "epoch": "at.epoch", "sequence": "at.sequence",
            },
            details={
                "ordering_key": "ordering_key",
                "overtaken": "longest.event_id",
                "overtaken_state": "longest.state",
            },
        ) }}
    from (
        {{ delta_outbox.longest_waits() | indent(8) }}
    )
    where
        not is_wait
        and longest.until > at
        and longest.event_id <> event_id
{%- endmacro %}
