{% macro fold_new_events(new_events) -%}
    {#-
        The fold where only events are new: each of them is a delivery that nothing has happened to.

        Arguments:
            new_events: what to select from, `first_copies` or `sole_copies`
        Columns: those of the projection, and replaces_destination (`fold_all`): null, for each is a row to insert.
    -#}
    select
        *,
        cast(null as string) as replaces_destination
    from {{ new_events }}
{%- endmacro %}
