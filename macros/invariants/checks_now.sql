{% macro checks_now() -%}
    {#- Whether this dbt command builds relations; compiling or documenting them asks the tables nothing. -#}
    {{ return(execute and flags.WHICH in ("build", "run", "retry")) }}
{%- endmacro %}
