{% macro lanes_before(range) -%}
    {#-
        Up to where each lane was checked before a range, and up to where a purge has removed its transitions, as a mapping of
        name to query.

        Argument: the mapping of `invariant_range`.
    -#}
    {%- set columns = "epoch:int,lane:int,sequence:bigint" -%}
    {{ return({
        "outbox_checked_lanes": delta_outbox.rows_of_json(range["lanes_before"], columns),
        "outbox_purged_lanes": delta_outbox.rows_of_json(range["purged_lanes"], columns),
    }) }}
{%- endmacro %}
