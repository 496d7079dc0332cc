{% macro schema_name(name) -%}
    {#-
        The name of a schema, which SQL takes as it is: letters, digits and underscores, or the run ends.

        Arguments:
            name: text
    -#}
    {%- set given = name | string | trim -%}
    {%- if not modules.re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,127}", given) -%}
        {%- do exceptions.raise_compiler_error(
            "delta_outbox: outbox_schema must be letters, digits and underscores. Got: " ~ delta_outbox.shown(given)
        ) -%}
    {%- endif -%}
    {{ return(given) }}
{%- endmacro %}
