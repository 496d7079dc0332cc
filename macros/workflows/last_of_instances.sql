{% macro last_of_instances(tasks) -%}
    {#- The last task of each instance. Argument: name of a query with the columns of `tasks_of`. Columns: those, and turn. -#}
    with numbered as (
        select
            *,
            row_number() over (partition by instance_key order by number desc) as turn
        from {{ tasks }}
    )

    select * from numbered
    where turn = 1
{%- endmacro %}
