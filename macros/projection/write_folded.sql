{% macro write_folded(into) -%}
    {#-
        Put folded rows into the projection: what merge_into_state would do with them, without looking for each row.

        Arguments:
            into: SQL text, where to: `into` for rows of which none takes the place of another; `into ... replace where` for all
                that may be touched; `overwrite` for rows that were derived anew
    -#}
    insert {{ into }}
    select {{ delta_outbox.state_columns() | join(", ") }} from outbox_folded
{%- endmacro %}
