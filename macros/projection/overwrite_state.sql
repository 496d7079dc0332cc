{% macro overwrite_state(state, folded) -%}
    {#- Replace the projection by rows that were derived anew from the logs. -#}
    insert overwrite {{ state }} select {{ delta_outbox.state_columns() | join(", ") }} from {{ folded }}
{%- endmacro %}
