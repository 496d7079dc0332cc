{% macro migrate_logs() %}
    {#-
        Bring the logs and the projection of an outbox to the format of this release (`outbox init` runs it). It adds what is
        missing and repeats nothing, so whatever interrupts it, it is run again; rows of the logs stay as they are.

        A constraint that some row of a log does not keep is left out there: such rows stay, and are rejected one by one when
        their turn comes. Once a purge has removed them, the next `outbox init` adds it.
    -#}
    {%- set schema = delta_outbox.schema_name(var("outbox_schema", env_var("OUTBOX_SCHEMA", "") or "outbox")) -%}
    {%- set names = [] -%}
    {%- for row in run_query("show tables in " ~ schema) -%}
        {%- do names.append(row["tableName"]) -%}
    {%- endfor -%}
    {#- The events last: whoever asks for the format asks them. -#}
    {%- for name in ("state", "transitions", "commands", "progress", "relays", "purged", "events") if "outbox_" ~ name in names -%}
        {%- do delta_outbox.migrate_table(name, schema ~ ".outbox_" ~ name) -%}
    {%- endfor -%}
{% endmacro %}
