{% macro instant_or(instant, otherwise="null") -%}
    {#-
        An instant if it is one that an outbox knows (instant_bounds), else another value: rows of logs that were written before
        there was a constraint may hold any.

        Arguments:
            instant: SQL, a timestamp
            otherwise: SQL, a timestamp
    -#}
    if({{ delta_outbox.instant_in_range(instant) }}, {{ instant }}, {{ otherwise }})
{%- endmacro %}
