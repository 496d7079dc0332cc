{% macro unknown_instances(targets, request) -%}
    {#- The instances that a request names and that have no open task. Arguments: relations, task_targets and task_request_row. -#}
    select named.instance
    from (select explode(instances) as instance from {{ request }}) as named
    left anti join (select explode(array(instance, instance_key)) as instance from {{ targets }}) as t
        on named.instance = t.instance
    order by named.instance
{%- endmacro %}
