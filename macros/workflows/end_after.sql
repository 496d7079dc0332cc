{% macro end_after(command) -%}
    {#-
        When a task expires by its extension; null where somebody has written anything else by hand.

        twin: python/delta_outbox/store/extensions.py::end_after

        Argument: name of a row of the command log.
    -#}
    try_cast(get_json_object({{ command }}.arguments, '$.until') as timestamp)
{%- endmacro %}
