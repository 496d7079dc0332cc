{% macro appends_only(commit) -%}
    {#-
        Whether a commit, a row of `describe history`, leaves every row of the table as it was: an append, maintenance that
        moves rows without changing them, a definition that touches none, or a purge that says so.

        Arguments:
            commit: row with operation, operationParameters, operationMetrics (JSON, as dbt shows maps) and userMetadata
    -#}
    {%- set operation = commit["operation"] -%}
    {%- set details = (commit["operationParameters"] or "") | string | lower -%}
    {%- set counted = fromjson(commit["operationMetrics"] or "", {}) -%}
    {%- set purges = (commit["userMetadata"] or "").startswith(delta_outbox.purge_marker()) -%}
    {%- if operation in ("WRITE", "STREAMING UPDATE") -%}
        {{ return("overwrite" not in details and "complete" not in details) }}
    {%- elif operation == "MERGE" -%}
        {{ return(counted.get("numTargetRowsUpdated") == "0" and (purges or counted.get("numTargetRowsDeleted") == "0")) }}
    {%- elif operation == "DELETE" -%}
        {{ return(purges) }}
    {%- endif -%}
    {{ return(operation in (
        "CREATE TABLE", "ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS", "ADD CONSTRAINT", "DROP CONSTRAINT",
        "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL", "DROP FEATURE", "CLUSTER BY", "COPY INTO",
        "OPTIMIZE", "REORG", "COMPUTE STATS", "ROW TRACKING BACKFILL", "VACUUM START", "VACUUM END",
    )) }}
{%- endmacro %}
