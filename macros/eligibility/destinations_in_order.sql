{% macro destinations_in_order(policy_rows) -%}
    {#-
        Which destinations keep an order together, where it is kept within destinations: a map from each to the names, joined
        by `|`. Those that share an event are one, by whichever policies: a later event must not pass one that goes to both.

        twin: python/delta_outbox/lifecycle/policy.py::_together

        Arguments:
            policy_rows: relation, the model policy_rows
        A query of one row and one column.
    -#}
    select
        map_from_entries(transform(
            names,
            name -> struct(name, array_join(array_sort(aggregate(
                groups, array(name), (outer_found, _) -> aggregate(
                    groups,
                    outer_found,
                    (found, one) -> if(arrays_overlap(found, one), array_union(found, one), found)
                )
            )), '|'))
        ))
    from (
        select
            groups,
            array_distinct(flatten(groups)) as names
        from (
            select collect_set(split(p.destination, '[|]')) as groups
            from {{ policy_rows }} as p
            where
                p.ordering = 'strict'
                and p.order_scope = 'destination'
        )
    )
{%- endmacro %}
