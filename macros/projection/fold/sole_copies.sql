{% macro sole_copies(tail) -%}
    {#-
        The new events where it is known that no id is there twice, among them or earlier: what `first_copies` returns then.

        Arguments:
            tail: relation, new rows of the event log (events_tail_select)
    -#}
    select
        {{ delta_outbox.first_state("a") }}
    from (select *, false as ambiguous from {{ tail }}) as a
{%- endmacro %}
