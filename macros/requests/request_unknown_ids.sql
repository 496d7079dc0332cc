{% macro request_unknown_ids(targets, request) -%}
    {#- The ids that a request names and no event has. Arguments: relations, request_targets and request_row. -#}
    select named.event_id
    from (select explode(event_ids) as event_id from {{ request }}) as named
    left anti join {{ targets }} as t on named.event_id = t.event_id
    order by named.event_id
{%- endmacro %}
