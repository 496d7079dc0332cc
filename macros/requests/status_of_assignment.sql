{% macro status_of_assignment(command, state) -%}
    {#-
        What became of an assignment: an expression. It holds by its place in the command log, so nobody has to apply it; of an item
        that had ended before it holds nothing.

        Arguments: names of a row of the command log, and of the delivery in the projection.
    -#}
    if(
        {{ delta_outbox.assignee_of(command) }} is null
        or ({{ state }}.state in ('PUBLISHED', 'DEAD') and {{ state }}.changed_at < {{ command }}.requested_at),
        'refused',
        'done'
    )
{%- endmacro %}
