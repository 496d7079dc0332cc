{% macro migrate_table(name, table) %}
    {#-
        Bring a table to the format of this release (see migrate_logs).

        Arguments:
            name: short name of a log, or `state`
            table: its full name
    -#}
    {%- set properties = {} -%}
    {%- for row in run_query("show tblproperties " ~ table) -%}
        {%- do properties.update({row["key"]: row["value"]}) -%}
    {%- endfor -%}
    {%- set is_older = properties.get("delta_outbox.format_version", "0") | int < delta_outbox.format_version() -%}
    {%- if is_older -%}
        {%- set columns = [] -%}
        {%- for row in run_query("show columns in " ~ table) -%}
            {%- do columns.append(row["col_name"]) -%}
        {%- endfor -%}
        {%- set added = {
            "events": ("payload_bytes", "int", "Size of the payload; null where the row is of format 1"),
            "state": ("payload_bytes", "int", "Size of the payload; null where its row is of format 1"),
            "relays": ("driver_id", "string", "The Spark driver through which the relay writes"),
        }.get(name) -%}
        {%- if added and added[0] not in columns -%}
            {%- do run_query("alter table " ~ table ~ " add columns (" ~ added[0] ~ " " ~ added[1] ~ " comment '" ~ added[2] ~ "')") -%}
        {%- endif -%}
        {%- if name == "state" -%}
            {%- do delta_outbox.mend_instants(table) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if name != "state" -%}
        {%- for check, condition in delta_outbox.log_checks(name).items() if "delta.constraints." ~ check not in properties -%}
            {%- if run_query("select 1 as found from " ~ table ~ " where not (" ~ condition ~ ") limit 1") | list -%}
                {%- do exceptions.warn("delta_outbox: " ~ table ~ " has rows that do not keep the constraint " ~ check ~ "; it is left out until `outbox init` finds none.") -%}
            {%- else -%}
                {%- do run_query("alter table " ~ table ~ " add constraint " ~ check ~ " check (" ~ condition ~ ")") -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if is_older -%}
        {#- Its place is taken by kind_is_known, which knows more kinds. -#}
        {%- if name == "commands" -%}
            {%- do run_query("alter table " ~ table ~ " drop constraint if exists kind_known") -%}
        {%- endif -%}
        {%- do run_query("alter table " ~ table ~ " set tblproperties ('delta_outbox.format_version' = '" ~ delta_outbox.format_version() ~ "')") -%}
    {%- endif -%}
{% endmacro %}
