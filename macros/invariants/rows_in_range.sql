{% macro rows_in_range(log, after, to) -%}
    {#-
        The rows that a log got in a range of its commits, as a source for FROM. From the change feed; all of them, where
        the range begins with the log, from a snapshot: the feed need not reach back so far.

        Arguments:
            log: relation
            after: version, exclusive; -1 for all
            to: version, inclusive
        Columns: those of the log, and _commit_version, the commit that brought the row; null where all transitions are
            asked for, whose rows are not tracked.
    -#}
    {%- if to <= after -%}
        {{ delta_outbox.no_changes(log) }}
    {%- elif after < 0 -%}
        {%- set commit = "_metadata.row_commit_version" if log.identifier == "outbox_events" else "cast(null as bigint)" %}
        (select *, {{ commit }} as _commit_version from {{ log }} version as of {{ to }})
    {%- else -%}
        (select * from table_changes('{{ log }}', {{ after + 1 }}, {{ to }}) where _change_type = 'insert')
    {%- endif -%}
{%- endmacro %}
