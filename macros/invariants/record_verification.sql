{% macro record_verification(results) %}
    {#-
        After a `dbt build` in which every invariant was checked and held: write down how far the logs are verified, as the
        next plan of the writer `invariants`. Whoever lost the race for the number leaves it to the winner. A build that
        found nothing new writes once a day, so that the position does not grow old.

        Arguments:
            results: what dbt hands to on-run-end
    -#}
    {%- if execute and flags.WHICH == "build" and delta_outbox.all_invariants_held(results) -%}
        {%- set worth_it -%}
            select 1 from {{ delta_outbox.invariants_relation("verification") }}
            where
                invocation_id = {{ delta_outbox.text_literal(invocation_id) }}
                and (not nothing_new or coalesce(verified_at < {{ delta_outbox.now_utc() }} - interval 1 day, true))
        {%- endset -%}
        {%- if run_query(worth_it).rows | length > 0 -%}
            {%- do run_query(delta_outbox.verified_position_script("dbt " ~ invocation_id)) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
