{% macro forget_write_version() %}
    {#-
        Clear the session settings of Delta's idempotent writes. The refresh sets and clears them around its writes; this
        clears them after a refresh that failed half-way, for a leftover version silently skips later writes.
    -#}
    {%- if execute and flags.WHICH in ("build", "run", "retry", "run-operation") -%}
        {%- do run_query("reset spark.databricks.delta.write.txnAppId") -%}
        {%- do run_query("reset spark.databricks.delta.write.txnVersion") -%}
        {%- do run_query("reset spark.databricks.delta.commitInfo.userMetadata") -%}
    {%- endif -%}
{% endmacro %}
