{% macro lane(ordering_key, event_id, lanes=1) -%}
    {#- The lane of an event: CRC-32 of its ordering key, else of its id, modulo the number of lanes (golden values tested). -#}
    cast(pmod(crc32(cast(coalesce({{ ordering_key }}, {{ event_id }}) as binary)), {{ lanes }}) as int)
{%- endmacro %}
