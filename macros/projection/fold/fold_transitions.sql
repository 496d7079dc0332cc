{% macro fold_transitions(state, new_events, last_transitions) -%}
    {#-
        The fold where nothing was asked for by a command: the deliveries that have new transitions, and the new events. What
        `fold_all` does without looking for kills, and with what is known of the tails: to plan what is empty takes longer than
        to run the rest, and to sort a million rows longer than to learn that none is there twice.

        Arguments:
            state: relation, the projection before the tails
            new_events: what to select from, `first_copies`, `sole_copies` or `no_copies`
            last_transitions: what to select from, `last_transitions` or `sole_transitions`
        Placeholders and columns: those of `fold_all`.
    -#}
    select
        {% for column in delta_outbox.state_columns() -%}
        {% if column.startswith("kill_") -%}
        if({{ delta_outbox.may_be_killed() }}, {{ column }}, null) as {{ column }},
        {% else -%}
        {{ column }},
        {% endif -%}
        {% endfor -%}
        replaces_destination
    from (
        {{ delta_outbox.moved_deliveries(state, new_events, last_transitions) | indent(8) }}
    )
    where is_touched or __with_untouched__
{%- endmacro %}
