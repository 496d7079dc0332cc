{% macro workflow_of(name) -%}
    {#-
        The workflow in a name of the form `workflow:<workflow>/...`: the key of an instance, or the event type of a task.

        Arguments:
            name: expression
    -#}
    substr(substring_index({{ name }}, '/', 1), 10)
{%- endmacro %}
