{% macro spark__generate_schema_name(custom_schema_name, node) -%}
    {#-
        The outbox lives in the schema `outbox_schema`, not in `<target>_outbox`, also where ours is not the root project
        (its `dispatch` names us); models of other projects go where they went.
    -#}
    {%- if node.package_name == "delta_outbox" -%}
        {{ return(delta_outbox.schema_name(var("outbox_schema", custom_schema_name or "outbox"))) }}
    {%- endif -%}
    {{ return(dbt.default__generate_schema_name(custom_schema_name, node)) }}
{%- endmacro %}
