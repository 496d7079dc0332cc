{% macro status_of_extension(command, state, applied) -%}
    {#-
        What became of an extension that no transition carries: an expression. A task that is no item expires by the command log
        itself; an item by the claim of `todo`, which another extension may have made last for longer.

        Arguments:
            command, state: names of a row of the command log with its version, and of the delivery in the projection
            applied: SQL expression, the version of the command log up to which commands have been applied
    -#}
    {%- set until = delta_outbox.end_after(command) -%}
    case
        when {{ until }} is null then 'refused'
        when {{ command }}.destination <> 'todo'
            then if({{ state }}.state in ('PUBLISHED', 'DEAD') and {{ state }}.changed_at < {{ command }}.requested_at, 'refused', 'done')
        when {{ state }}.lease_expires_at >= {{ until }} then 'done'
        else if({{ command }}.version <= {{ applied }}, 'refused', 'waiting')
    end
{%- endmacro %}
