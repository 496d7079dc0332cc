{% macro mend_instants(state) %}
    {#-
        Give the rows of a projection of format 1 the instants that `first_state` and `transitions_tail_select` give to others.

        Arguments:
            state: relation, the projection
    -#}
    {%- set instants = [
        "created_at", "appended_at", "scheduled_at", "available_at", "lease_expires_at", "claimed_at", "published_at",
        "replayed_at", "changed_at",
    ] -%}
    {%- set beyond = "not (" ~ delta_outbox.instants_check(instants) ~ ")" -%}
    {%- if run_query("select 1 as found from " ~ state ~ " where " ~ beyond ~ " limit 1") | list -%}
        {%- set created_at = delta_outbox.nearest_instant("created_at") -%}
        {%- do run_query(
            "update " ~ state ~ " set created_at = " ~ created_at
            ~ ", appended_at = " ~ delta_outbox.instant_or("appended_at", created_at)
            ~ ", scheduled_at = " ~ delta_outbox.instant_or("scheduled_at")
            ~ ", available_at = " ~ delta_outbox.instant_or("available_at")
            ~ ", lease_expires_at = " ~ delta_outbox.instant_or("lease_expires_at")
            ~ ", claimed_at = " ~ delta_outbox.instant_or("claimed_at")
            ~ ", published_at = " ~ delta_outbox.instant_or("published_at")
            ~ ", replayed_at = " ~ delta_outbox.instant_or("replayed_at")
            ~ ", changed_at = " ~ delta_outbox.instant_or("changed_at")
            ~ " where " ~ beyond
        ) -%}
    {%- endif -%}
{% endmacro %}
