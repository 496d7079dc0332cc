{% macro workflows_in_force() -%}
    {#-
        The SQL of the model `railway_in_force`, which `outbox workflow build` writes into a project of the user's own: the
        workflows of its seeds. The materialization `outbox_workflows` checks the rows of all four seeds before.
    -#}
    {%- for seed in delta_outbox.workflow_columns() -%} {%- do ref(seed) -%} {%- endfor -%}
    select
        workflow,
        version,
        title,
        starts_on,
        instance,
        first_task,
        default_exit,
        hash
    from {{ ref("railway_workflows") }}
{%- endmacro %}
