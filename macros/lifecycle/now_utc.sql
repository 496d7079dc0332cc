{% macro now_utc() -%}
    {#-
        The one clock of every model: the variable `as_of` where it is given, else the current time, shifted by
        OUTBOX_CLOCK_OFFSET_SECONDS (tests only).
    -#}
    {%- set as_of = var("as_of", none) -%}
    {%- set offset = env_var("OUTBOX_CLOCK_OFFSET_SECONDS", "0") -%}
    {%- if as_of -%}
        cast({{ delta_outbox.text_literal(as_of) }} as timestamp)
    {%- elif offset | float != 0 -%}
        (current_timestamp() + make_dt_interval(0, 0, 0, {{ offset | float }}))
    {%- else -%}
        current_timestamp()
    {%- endif -%}
{%- endmacro %}
