{% macro resume(destination=none, reason="not given", actor=none) -%}
    {#-
        Ask for a destination that was paused to be served again: `dbt run-operation resume --args '{destination: ...}'`.

        What waited is taken in order, as far as its policies still allow it.

        Arguments:
            destination: its name, as in the policies
            reason: why, one line
            actor: who asks, one line; the user of this process if left out
    -#}
    {%- do delta_outbox.perform_pausing("resume", {"destination": destination, "reason": reason, "actor": actor}) -%}
{%- endmacro %}
