{% macro check_format(events) -%}
    {#-
        Stop unless the logs have the format of this release.

        Arguments:
            events: full name of the event log, the last one that `migrate_logs` brings to a format
    -#}
    {%- set row = (run_query("show tblproperties " ~ events ~ " ('delta_outbox.format_version')") | list)[0] -%}
    {%- if row["value"] | int < delta_outbox.format_version() -%}
        {{ exceptions.raise_compiler_error(
            "delta_outbox: " ~ events ~ " is of format " ~ row["value"] ~ ", and this release writes format "
            ~ delta_outbox.format_version() ~ ". Run `outbox init`, which brings the logs to it and keeps all that they hold."
        ) }}
    {%- elif row["value"] | int > delta_outbox.format_version() -%}
        {{ exceptions.raise_compiler_error(
            "delta_outbox: " ~ events ~ " is of format " ~ row["value"] ~ ", and this release knows formats up to "
            ~ delta_outbox.format_version() ~ ". Upgrade delta-outbox."
        ) }}
    {%- endif -%}
{%- endmacro %}
