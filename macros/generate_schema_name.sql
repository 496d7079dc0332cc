{% macro spark__generate_schema_name(custom_schema_name, node) -%}
    {#- A custom schema is taken as it is: the outbox lives in `outbox`, not in `<target>_outbox`. -#}
    {{ return((custom_schema_name or target.schema) | trim) }}
{%- endmacro %}
