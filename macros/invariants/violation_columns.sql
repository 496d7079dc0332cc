{% macro violation_columns() -%}
    {#- What every rule says of a violation, in order, as a mapping of name to type: the columns of `ddl_violations` before `found_at`. -#}
    {{ return({
        "invariant": "string", "problem": "string", "event_id": "string", "arrival": "bigint", "destination": "string",
        "epoch": "int", "lane": "int", "sequence": "bigint", "occurred_at": "timestamp", "details": "map<string,string>",
    }) }}
{%- endmacro %}
