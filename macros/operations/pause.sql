{% macro pause(destination=none, reason="not given", actor=none) -%}
    {#-
        Ask for nothing to be taken for a destination: `dbt run-operation pause --args '{destination: ...}'`.

        Its events stay PENDING and burn no attempt; what is in flight is finished. Later events of a key whose next event goes
        there wait as well.

        Arguments:
            destination: its name, as in the policies
            reason: why, one line
            actor: who asks, one line; the user of this process if left out
    -#}
    {%- do delta_outbox.perform_pausing("pause", {"destination": destination, "reason": reason, "actor": actor}) -%}
{%- endmacro %}
