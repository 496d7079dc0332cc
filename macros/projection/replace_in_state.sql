{% macro replace_in_state(state, folded) -%}
    {#-
        Let folded rows take the place of all that the projection has of some states and arrivals: what merge_into_state
        would do with them, without looking for each row.

        Arguments:
            state: relation, the projection
            folded: rows with the columns of the projection: those that touched deliveries get, and all others that may be
                touched
        Placeholder: __touched__, the condition of `fold_all`.
    -#}
    insert into {{ state }}
    replace where __touched__
    select {{ delta_outbox.state_columns() | join(", ") }} from {{ folded }}
{%- endmacro %}
