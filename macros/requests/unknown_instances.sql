{% macro unknown_instances(targets, request) -%}
    {#-
        The instances and tasks that a request names and that it finds no open task for.

        Arguments: relations, task_targets and task_request_row.
    -#}
    select named.instance
    from (
        select explode(concat(coalesce(instances, array()), coalesce(task_ids, array()))) as instance
        from {{ request }}
    ) as named
    left anti join (select explode(array(instance, instance_key, event_id)) as instance from {{ targets }}) as t
        on named.instance = t.instance
    order by named.instance
{%- endmacro %}
