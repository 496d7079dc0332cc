{% macro checked_commands_select(commands, range) -%}
    {#-
        What operators asked for, with who and why, as far as doubtful transitions of the range claim to be asked for; the log is read
        only where one does.

        Arguments:
            commands: relation, the log of commands
            range: the mapping of `invariant_range`
    -#}
    select /*+ merge(t) */ distinct
        c.command_id,
        c.kind,
        c.event_id,
        c.arrival
    from {{ commands }} as c
    left semi join outbox_doubtful_transitions as t on c.command_id = t.command_id
    where
        {{ "true" if range["interventions"] else "false" }}
        and c.kind in ('replay', 'kill')
        and length(trim(c.actor)) > 0
        and length(trim(c.reason)) > 0
{%- endmacro %}
