{% macro new_transitions(log, range) -%}
    {#-
        The transitions of a range. Where each append has the next number of its lane they are found by that, which is three
        times as fast as the change feed; not after a purge, which may have removed some of them.

        Arguments:
            log: relation
            range: the mapping of `invariant_range`, its news counted
        Columns: those of the log, and _commit_version, null where it is not known.
    -#}
    {%- if range["whole"] or not range["transitions"] or range["broken_appends"] or range["purged"] -%}
        select * from {{ delta_outbox.rows_in_range(log, range["transitions_after"], range["transitions_to"]) }}
    {%- else -%}
        select
            *,
            cast(null as bigint) as _commit_version
        from {{ log }} version as of {{ range["transitions_to"] }}
        where
            occurred_at >= timestamp{{ delta_outbox.text_literal(range["since"]) }}
            {%- for lane in range["lanes_before"] %}
            and (epoch <> {{ lane["epoch"] }} or lane <> {{ lane["lane"] }} or sequence > {{ lane["sequence"] }})
            {%- endfor %}
    {%- endif -%}
{%- endmacro %}
