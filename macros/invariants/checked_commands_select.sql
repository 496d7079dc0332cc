{% macro checked_commands_select(commands, range) -%}
    {#-
        What operators asked for, with who and why; read only where a transition of the range claims to be asked for.

        Arguments:
            commands: relation, the log of commands
            range: the mapping of `invariant_range`
    -#}
    select distinct
        command_id,
        kind,
        event_id,
        arrival
    from {{ commands }}
    where
        {{ "true" if range["interventions"] else "false" }}
        and kind in ('replay', 'kill')
        and length(trim(actor)) > 0
        and length(trim(reason)) > 0
{%- endmacro %}
