{% macro ordered_deliveries_select(range) -%}
    {#-
        The deliveries that a range can have touched whose key is doubtful (`doubtful_keys`): a part of `broken_by_order`.

        Argument: the mapping of `invariant_range`, with its doubts.
    -#}
    {%- if range["judges_all"] -%}
        select * from outbox_touched_deliveries where ordering_key is not null
    {%- elif range["doubtful_keys"] -%}
        select /*+ broadcast(k) */ d.*
        from outbox_touched_deliveries as d
        left semi join ({{ delta_outbox.doubtful_keys() | indent(8) }}) as k on xxhash64(d.ordering_key) = k.key_hash
    {%- else -%}
        select * from outbox_touched_deliveries where false
    {%- endif -%}
{%- endmacro %}
