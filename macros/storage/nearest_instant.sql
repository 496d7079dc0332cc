{% macro nearest_instant(instant) -%}
    {#-
        An instant, or the first or last one that an outbox knows (instant_bounds) if it is earlier or later.

        Arguments:
            instant: SQL, a timestamp that is not null
    -#}
    {%- set first, last = delta_outbox.instant_bounds() -%}
    least(greatest({{ instant }}, timestamp_micros({{ first }})), timestamp_micros({{ last }}))
{%- endmacro %}
