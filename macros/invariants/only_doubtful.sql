{% macro only_doubtful(rows, range) -%}
    {#-
        The rows of a query that are of doubtful events; all of them where everything is judged.

        Arguments:
            rows: name of a query that has event_id
            range: the mapping of `invariant_range`, with its doubts
    -#}
    {%- if range["judges_all"] -%}
        select * from {{ rows }}
    {%- elif range["doubtful_events"] -%}
        select /*+ broadcast(x) */ r.*
        from {{ rows }} as r
        left semi join outbox_doubtful_events as x on xxhash64(r.event_id) = x.event_hash
    {%- else -%}
        select * from {{ rows }} where false
    {%- endif -%}
{%- endmacro %}
