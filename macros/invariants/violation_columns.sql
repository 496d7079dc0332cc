{% macro violation_columns() -%}
    {#- What every rule says of a violation, in order: the columns of `ddl_violations` before `found_at`. -#}
    {{ return([
        "invariant", "problem", "event_id", "arrival", "destination", "epoch", "lane", "sequence", "occurred_at", "details",
    ]) }}
{%- endmacro %}
