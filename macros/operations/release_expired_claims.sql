{% macro release_expired_claims(event_ids=none, claim_ids=none, reason=none, actor=none, dry_run=true) -%}
    {#-
        Ask for claims to end whose lease is over: `dbt run-operation release_expired_claims --args '{reason: ..., actor: ...}'`.

        A claim whose lease runs is left alone, whoever asks: its worker may be about to send.

        Arguments:
            event_ids, claim_ids: lists of texts; all claims whose lease is over if left out
            reason, actor: one line each; required
            dry_run: false to ask for it
    -#}
    {%- do delta_outbox.perform_request(
        "release",
        {"event_ids": event_ids, "claim_ids": claim_ids, "reason": reason, "actor": actor, "dry_run": dry_run}
    ) -%}
{%- endmacro %}
