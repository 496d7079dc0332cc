{% macro check_storage(schema) -%}
    {#-
        Stop unless all logs lie where a commit has one winner (delta/storage_places.py, docs/security.md). A folder of a disk is taken
        below the warehouse of a Spark that was started for a home, and so holds its lock. The variable `single_driver` is the
        promise of the operator that one driver alone writes.

        Arguments:
            schema: text, where the logs are
        Result: list, the names of those that are there, of what was purged and of the projection
    -#}
    {%- set promised = var("single_driver", none) -%}
    {%- if promised is not none and promised is not boolean -%}
        {{ exceptions.raise_compiler_error(
            "delta_outbox: the variable single_driver must be true or false. Got: " ~ delta_outbox.shown(promised | string)
        ) }}
    {%- endif -%}
    {%- set names = delta_outbox.log_names() + ["outbox_purged", "outbox_state"] -%}
    {%- set there = [] -%}
    {%- set known = namespace(warehouse=none, is_asked=false, settings={}) -%}
    {%- for row in run_query("show table extended in " ~ schema ~ " like '" ~ names | join("|") ~ "'") -%}
        {%- do there.append(row["tableName"]) -%}
        {%- set found = modules.re.search("(?m)^Location: (.+)$", row["information"]) -%}
        {%- if found -%}
            {%- set location = found[1] | trim -%}
            {%- set scheme = delta_outbox.storage_scheme(location) -%}
            {%- if scheme == "file" and not known.is_asked -%}
                {%- set known.is_asked = true -%}
                {#- The catalog of a home spells its places as the home is spelled (runtime/catalog_places.py). -#}
                {%- set home = delta_outbox.spark_setting("spark.outbox.home") -%}
                {%- set known.warehouse = none if home is none else home ~ "/warehouse" -%}
            {%- elif scheme != "file" and scheme not in known.settings -%}
                {%- set named = [] -%}
                {%- for name in (
                    "spark.delta.logStore.class", "spark.delta.logStore." ~ scheme ~ ".impl",
                    "spark.hadoop.delta.logStore." ~ scheme ~ ".impl",
                ) -%}
                    {%- do named.append(delta_outbox.spark_setting(name)) -%}
                {%- endfor -%}
                {%- do known.settings.update({scheme: named | select | first | default(none)}) -%}
            {%- endif -%}
            {%- set problem = delta_outbox.storage_problem(
                schema ~ "." ~ row["tableName"], location, known.warehouse, known.settings.get(scheme), promised is true
            ) -%}
            {%- if problem -%}
                {{ exceptions.raise_compiler_error("STORAGE_PRECONDITION: " ~ problem) }}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(there) }}
{%- endmacro %}
