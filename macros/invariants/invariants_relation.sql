{% macro invariants_relation(name) -%}
    {#-
        A model below models/invariants, from where `ref` is of no help: hooks and operations.

        Arguments:
            name: the model's name
    -#}
    {%- set node = graph.nodes["model.delta_outbox." ~ name] -%}
    {{ return(api.Relation.create(database=node["database"], schema=node["schema"], identifier=node["alias"])) }}
{%- endmacro %}
