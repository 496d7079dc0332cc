{% macro log_properties(checks={}, extra={}, statistics=[]) -%}
    {#-
        Table properties that every log carries. `delta.appendOnly` is not among them: switching it off for a purge makes
        concurrent producers fail; immutability is an invariant over the commit history instead.

        Arguments:
            checks: name to condition, the constraints of the table
            extra: name to value, further properties
            statistics: the columns of which Delta keeps the least and the greatest value of each file, where readers ask for
                ranges of few columns: to keep them for all costs more than a tenth of an append. Left out: of all.
    -#}
    {%- set properties = {
        "delta_outbox.format_version": delta_outbox.format_version(),
        "delta.enableChangeDataFeed": "true",
        "delta.checkpointInterval": "50",
        "delta.autoOptimize.autoCompact": "false",
        "delta.autoOptimize.optimizeWrite": "false",
    } -%}
    {%- if statistics -%}
        {%- do properties.update({"delta.dataSkippingStatsColumns": statistics | join(",")}) -%}
    {%- endif -%}
    {%- do properties.update(extra) -%}
    {%- for name, condition in checks.items() -%}
        {%- do properties.update({"delta.constraints." ~ name: condition}) -%}
    {%- endfor -%}
    {%- for key, value in properties.items() %}
    '{{ key }}' = "{{ value }}"{{ "," if not loop.last }}
    {%- endfor %}
{%- endmacro %}
