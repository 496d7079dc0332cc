{% macro create_logs() %}
    {#-
        Create the schema, the logs and the record of what was purged from them, as far as they are missing, and stop where
        they lie on a store that lets two drivers win, or are of another format; never alter data. Runs before every dbt command
        that builds or tests (on-run-start), and is idempotent. Operations begin with `check_logs`.
    -#}
    {%- if execute and flags.WHICH in ("build", "run", "seed", "run-operation", "test", "snapshot", "retry") -%}
        {%- set schema = delta_outbox.schema_name(var("outbox_schema", env_var("OUTBOX_SCHEMA", "") or "outbox")) -%}
        {%- do delta_outbox.check_schema(schema) -%}
        {%- set known = [] -%}
        {%- for row in run_query("show schemas like '" ~ schema ~ "'") -%}
            {%- do known.extend(delta_outbox.check_storage(schema)) -%}
        {%- endfor -%}
        {%- if "outbox_events" in known -%}
            {%- do delta_outbox.check_format(schema ~ ".outbox_events") -%}
        {%- endif -%}
        {%- if "outbox_purged" not in known -%}
            {%- do run_query("create schema if not exists " ~ schema) -%}
            {%- for name in delta_outbox.log_names() + ["outbox_purged"] if name not in known -%}
                {%- set ddl = delta_outbox["ddl_" ~ name[7:]] -%}
                {%- do run_query(ddl(schema ~ "." ~ name)) -%}
            {%- endfor -%}
            {%- do delta_outbox.check_storage(schema) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
