{% macro as_of_version(relation, version) -%}
    {#-
        A table at one of its versions, as a source for FROM; without rows where the version is negative.

        Arguments:
            relation: relation
            version: number, or a negative one for nothing
    -#}
    {%- if version < 0 -%}
        (select * from {{ relation }} where false)
    {%- else -%}
        (select * from {{ relation }} version as of {{ version }})
    {%- endif -%}
{%- endmacro %}
