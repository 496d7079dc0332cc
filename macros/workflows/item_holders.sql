{% macro item_holders(state=none, since=none) -%}
    {#-
        Who holds items: of the assignments of an item, the last in the command log says so. One that names nobody gives it back; what
        somebody has written by hand without naming anybody, or nobody, is passed over.

        Arguments:
            state: relation, the projection, to ask for its open tasks only; for all there ever were if left out
            since: only commands of that day and later, as an expression of SQL; all of them if left out

        Columns: event_id, arrival, assigned_to; null where the item was given back.
    -#}
    select
        a.event_id,
        a.arrival,
        nullif(max_by(a.assignee, struct(a.version, a.command_id)), '') as assigned_to
    from (
        select
            c.event_id,
            c.arrival,
            c.command_id,
            c._metadata.row_commit_version as version,
            {{ delta_outbox.assignee_of("c") }} as assignee
        from {{ source("outbox", "outbox_commands") }} as c
        {%- if state %}
        left semi join {{ state }} as d
            on
                c.event_id = d.event_id
                and c.arrival = d.arrival
                and d.state in ('PENDING', 'CLAIMED')
                and {{ delta_outbox.is_reserved("d.event_type") }}
        {%- endif %}
        where c.kind = 'assign'{% if since %} and c.requested_date >= {{ since }}{% endif %}

    ) as a
    where a.assignee is not null
    group by a.event_id, a.arrival
{%- endmacro %}
