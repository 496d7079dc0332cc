{% macro check_schema(schema) -%}
    {#-
        Stop unless the projection and the views are built in the schema of the logs. They are not where a project that uses
        ours as a package does not send `generate_schema_name` to us.

        Arguments:
            schema: text, where the logs are
    -#}
    {%- for node in graph.nodes.values() if node.package_name == "delta_outbox" and node.resource_type in ("model", "seed") -%}
        {%- if node.schema != schema -%}
            {{ exceptions.raise_compiler_error(
                "delta_outbox: " ~ node.name ~ " must be in the schema of the logs, " ~ schema ~ ". Got: " ~ node.schema
                ~ ". In dbt_project.yml, set outbox_schema at the top level of vars (not below delta_outbox), and add: "
                ~ "dispatch: [{macro_namespace: dbt, search_order: [" ~ project_name ~ ", delta_outbox, dbt]}]"
            ) }}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
