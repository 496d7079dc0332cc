{% macro recent_days() -%}
    {#-
        The instant from which on views of workflows look for what is between two tasks: the days of the identity horizon ago. A
        literal for Spark, so that files which are older are not read.
    -#}
    {{ delta_outbox.now_utc() }} - interval {{ var("identity_horizon_days", 7) | int }} days
{%- endmacro %}
