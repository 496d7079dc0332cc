{% macro eligible_all(deliveries) -%}
    {#-
        What `eligible` returns where all that waits is due and nothing is claimed or holds its key: all of it. To look for
        what blocks what, and find nothing, takes longer than all the rest of a plan.

        Arguments:
            deliveries: relation, the open deliveries
    -#}
    select *
    from {{ deliveries }}
    where state = 'PENDING' and kill_command_id is null
{%- endmacro %}
