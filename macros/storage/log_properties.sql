{% macro log_properties(checks={}, extra={}) -%}
    {#-
        Table properties that every log carries. `delta.appendOnly` is not among them: switching it off for a purge makes
        concurrent producers fail; immutability is an invariant over the commit history instead.
    -#}
    {%- set properties = {
        "delta_outbox.format_version": delta_outbox.format_version(),
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
        "delta.checkpointInterval": "50",
        "delta.autoOptimize.autoCompact": "false",
        "delta.autoOptimize.optimizeWrite": "false",
    } -%}
    {%- do properties.update(extra) -%}
    {%- for name, condition in checks.items() -%}
        {%- do properties.update({"delta.constraints." ~ name: condition}) -%}
    {%- endfor -%}
    {%- for key, value in properties.items() %}
    '{{ key }}' = "{{ value }}"{{ "," if not loop.last }}
    {%- endfor %}
{%- endmacro %}
