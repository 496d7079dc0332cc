{% macro storage_problem(table, location, warehouse, store, single_driver) -%}
    {#-
        Why a log may not lie where it lies, in the words of Python; nothing where it may.

        twin: python/delta_outbox/delta/storage_places.py::check_places

        Arguments:
            table: its full name
            location: as the catalog has it
            warehouse: path of the warehouse of the home that this Spark was started for; none for a Spark of somebody else
            store: the log store that Delta is told to use there; none for its own choice
            single_driver: whether the operator promises that one driver alone writes
    -#}
    {%- set scheme = delta_outbox.storage_scheme(location) -%}
    {%- if scheme == "file" -%}
        {%- set path = modules.re.sub("^file:(?://[^/]*(?=/))?", "", location) -%}
        {%- if warehouse is none or not path.startswith(warehouse ~ "/") -%}
            {{- table }}: a log on a local disk must lie in the warehouse of this home{{ "" if warehouse is none else ", " ~ warehouse }}, because only its lock keeps a second driver away, and two drivers on local files can both win. Got: {{ location }}{{ " through a Spark that is not of this home" if warehouse is none }}. Let the logs lie in the home, and share it with other processes by `outbox serve` (with OUTBOX_HOME set to that home); for several machines use HDFS.
        {%- endif -%}
    {%- elif not single_driver -%}
        {%- set looks_then_puts = store is not none and modules.re.fullmatch(
            "(?:io[.]delta[.]storage|org[.]apache[.]spark[.]sql[.]delta[.]storage)[.]"
            ~ "(?:S3SingleDriver|HDFS|Azure|Local|GCS|Delegating)LogStore",
            store
        ) -%}
        {%- set has_one_winner = (
            scheme in ("hdfs", "abfs", "abfss", "adl", "wasb", "wasbs", "gs") if store is none
            else (scheme == "hdfs" and "HDFS" in store) if looks_then_puts
            else true
        ) -%}
        {%- if not has_one_winner -%}
            {{- table }}: Delta's log store for {{ scheme }}:// lets two drivers win the same commit, and what one of them has appended would be gone. Got: {{ location }}. Use HDFS, or give Delta a log store for it that puts a commit only where there is none (spark.delta.logStore.{{ scheme }}.impl). If one Spark driver, and never a second one, writes to these tables, promise it: `single_driver = true` below [storage] in outbox.toml, and the variable `single_driver: true` of dbt; `outbox status` shows the promise.
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
