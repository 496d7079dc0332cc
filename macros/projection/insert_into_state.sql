{% macro insert_into_state(state, folded) -%}
    {#-
        Add folded rows to the projection of which none takes the place of another: what merge_into_state would do with
        them, without looking for what is not there.

        Arguments:
            state: relation, the projection
            folded: rows with the columns of the projection, of deliveries that it does not have
    -#}
    insert into {{ state }} ({{ delta_outbox.state_columns() | join(", ") }})
    select {{ delta_outbox.state_columns() | join(", ") }} from {{ folded }}
{%- endmacro %}
