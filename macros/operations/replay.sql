{% macro replay(state=none, event_type=none, since=none, until=none, event_ids=none, error=none, everything=false, reason=none, actor=none, dry_run=true) -%}
    {#-
        Ask for deliveries to be made again: `dbt run-operation replay --args '{state: DEAD, reason: ..., actor: ...}'`.

        Each starts a new lifecycle. Prints what would be replayed; with `dry_run: false` appends the command, prints its id,
        and whoever appends transitions next applies it. A delivery that moves on before that is left alone.

        Arguments:
            state: DEAD or PUBLISHED
            event_type: shell glob, as in the delivery policies
            since, until: ISO 8601 with an offset; half-open, on created_at
            event_ids: list of texts
            error: text that the last error holds
            everything: true for all that was ever PUBLISHED, which needs a filter otherwise
            reason, actor: one line each; required
            dry_run: false to ask for it
    -#}
    {%- do delta_outbox.perform_request("replay", {
        "state": state, "event_type": event_type, "since": since, "until": until, "event_ids": event_ids,
        "error": error, "everything": everything, "reason": reason, "actor": actor, "dry_run": dry_run,
    }) -%}
{%- endmacro %}
