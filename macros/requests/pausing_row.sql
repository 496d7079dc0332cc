{% macro pausing_row(kind, command_id, destination, checked) -%}
    {#-
        A request to pause or resume as one row, each value a literal.

        Arguments:
            kind: pause or resume
            command_id, destination: texts
            checked: mapping with actor and reason, as check_line fills it
    -#}
    (
        select
            {{ delta_outbox.text_literal(kind) }} as kind,
            {{ delta_outbox.text_literal(command_id) }} as command_id,
            {{ delta_outbox.text_literal(destination) }} as destination,
            {{ delta_outbox.text_literal(checked.actor) }} as actor,
            {{ delta_outbox.text_literal(checked.reason) }} as reason
    )
{%- endmacro %}
