{% macro states() -%}
    {#- The states of the lifecycle. The Python enum `State` is tested equal to it. -#}
    {{ return(["PENDING", "CLAIMED", "PUBLISHED", "DEAD"]) }}
{%- endmacro %}
