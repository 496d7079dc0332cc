{% macro lane(ordering_key, event_id, lanes) -%}
    {#-
        The lane of an event: CRC-32 of its ordering key, else of its id, modulo the number of lanes (golden values tested).

        twin: python/delta_outbox/store/lanes.py::lane_of

        Arguments:
            ordering_key, event_id: SQL expressions
            lanes: SQL expression, how many there are
    -#}
    cast(pmod(crc32(cast(coalesce({{ ordering_key }}, {{ event_id }}) as binary)), {{ lanes }}) as int)
{%- endmacro %}
