{% macro instant_in_range(instant) -%}
    {#-
        Whether an instant is one that an outbox knows (instant_bounds); null for null.

        Arguments:
            instant: SQL, a timestamp
    -#}
    {%- set first, last = delta_outbox.instant_bounds() -%}
    unix_micros({{ instant }}) between {{ first }} and {{ last }}
{%- endmacro %}
