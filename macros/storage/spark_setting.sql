{% macro spark_setting(name) -%}
    {#-
        What a setting of Spark is; none where it is left at its default.

        Arguments:
            name: text
    -#}
    {%- set value = (run_query("set " ~ name) | list)[0]["value"] | string | trim -%}
    {{ return(none if value in ("", "<undefined>") else value) }}
{%- endmacro %}
