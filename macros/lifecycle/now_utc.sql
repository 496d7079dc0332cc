{% macro now_utc() -%}
    {#-
        The one clock of every model: the variable `as_of` where it is given, else the current time, shifted by
        OUTBOX_CLOCK_OFFSET_SECONDS (tests only).
    -#}
    {%- set as_of = var("as_of", none) -%}
    {%- set offset = env_var("OUTBOX_CLOCK_OFFSET_SECONDS", "0") -%}
    {%- if as_of -%}
        {%- if not modules.re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?)?(Z|[+-][0-9]{2}:[0-9]{2})?", as_of | string) -%}
            {%- do exceptions.raise_compiler_error(
                "delta_outbox: as_of must be an instant, such as 2026-11-01T12:00:00Z. Got: " ~ delta_outbox.shown(as_of | string)
            ) -%}
        {%- endif -%}
        cast({{ delta_outbox.text_literal(as_of) }} as timestamp)
    {%- elif offset | float != 0 -%}
        (current_timestamp() + make_dt_interval(0, 0, 0, {{ offset | float }}))
    {%- else -%}
        current_timestamp()
    {%- endif -%}
{%- endmacro %}
