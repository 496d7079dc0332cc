{% macro assignee_of(command) -%}
    {#-
        To whom an assignment gives an item, empty for nobody; null where somebody has written anything else by hand.

        Argument: name of a row of the command log.
    -#}
    get_json_object({{ command }}.arguments, '$.to')
{%- endmacro %}
