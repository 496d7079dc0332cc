{% macro no_copies(state) -%}
    {#- The new events where there are none: what `first_copies` returns then. Argument: relation, the projection. -#}
    select {{ delta_outbox.state_columns() | join(", ") }} from {{ state }} where false
{%- endmacro %}
