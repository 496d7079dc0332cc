{% macro stranding_names() -%}
    {#-
        The tasks of each workflow of each numbered write of `workflows` at which an instance may be stranded.

        Columns: number, workflow, and lists of names: once, whose identifiers have no visit and are used once; gone, which the
        workflows in force do not have, or have in another category.
    -#}
    with kept_tasks as (
        {{ delta_outbox.kept_rows("railway_tasks") | indent(8) }}
    ),

    in_force as (
        {{ delta_outbox.rows_in_force("railway_tasks") | indent(8) }}
    )

    select
        k.number,
        k.workflow,
        -- A brace that is meant is doubled.
        collect_list(k.task) filter (where not contains(regexp_replace(k.identifier, '[{]{2}|[}]{2}', ''), '{visit}')) as once,
        collect_list(k.task) filter (where f.task is null) as gone
    from kept_tasks as k
    left join in_force as f
        on
            k.workflow = f.workflow
            and k.task = f.task
            and k.category = f.category
    group by k.number, k.workflow
{%- endmacro %}
