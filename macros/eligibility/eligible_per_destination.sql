{% macro eligible_per_destination(deliveries, policy_rows, now, unavailable, each) -%}
    {#-
        What is eligible where destinations are isolated: nothing for those that are unavailable, and of each set of
        destinations no more than some, so that one that is slow or far behind fills no plan.

        A limit always cuts a prefix: nothing is taken of a key behind one that its own destinations' limit has cut off.

        Arguments: those of `eligible`, and
            unavailable: names joined by `|`, as in held_by_order
            each: deliveries for each set of destinations, at most
    -#}
    with due as (
        {{ delta_outbox.held_by_order(deliveries, policy_rows, now, unavailable) | indent(8) }}
    ),

    in_turn as (
        select
            *,
            row_number() over (partition by goes_to order by position) as turn
        from due
        where blocker is null
    ),

    first_cut as (
        select
            scope.ordering_key as ordering_key,
            min(position) as position
        from in_turn
        where
            turn > {{ each }}
            and scope is not null
        group by scope.ordering_key
    )

    select in_turn.* except (blocker, scope, goes_to, turn)
    from in_turn
    left join first_cut on in_turn.scope.ordering_key = first_cut.ordering_key
    where
        in_turn.turn <= {{ each }}
        and coalesce(in_turn.position < first_cut.position, true)
{%- endmacro %}
