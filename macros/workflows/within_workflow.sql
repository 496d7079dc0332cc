{% macro within_workflow(name) -%}
    {#-
        What comes after the workflow in a name of the form `workflow:<workflow>/...`: the instance in its key, the task in its
        event type.

        Arguments:
            name: expression
    -#}
    substr({{ name }}, instr({{ name }}, '/') + 1)
{%- endmacro %}
