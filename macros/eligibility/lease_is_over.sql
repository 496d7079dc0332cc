{% macro lease_is_over(now, alias=none) -%}
    {#-
        A condition on a claimed delivery: its lease is over by the clock, so that an operator may ask for the end of the claim.
        What waits for a person (`todo`) has none. A relay ends a claim by proof only (`ExpiredClaims` in
        python/delta_outbox/store/expired_claims.py).

        Arguments:
            now: SQL expression, the time of the question
            alias: of the projection; none where it needs none
    -#}
    {%- set of = alias ~ "." if alias else "" -%}
    ({{ of }}claimed_by <> 'todo' and {{ of }}lease_expires_at <= {{ now }})
{%- endmacro %}
