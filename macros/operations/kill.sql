{% macro kill(event_ids=none, reason=none, actor=none, dry_run=true) -%}
    {#-
        Ask for events to end undelivered: `dbt run-operation kill --args '{event_ids: [...], reason: ..., actor: ...}'`.

        A waiting event is hidden at once and DEAD when it is due, a claimed one after its claim unless that delivers it,
        an item that waits for a person at once; of a DEAD one that holds its key the key goes on.

        Arguments:
            event_ids: list of texts
            reason, actor: one line each; required
            dry_run: false to ask for it
    -#}
    {%- do delta_outbox.perform_request(
        "kill", {"event_ids": event_ids, "reason": reason, "actor": actor, "dry_run": dry_run}
    ) -%}
{%- endmacro %}
