{% macro double_claim() -%}
    {#- What is wrong where a delivery is claimed beside a live claim. -#}
    case when to_state = 'CLAIMED' and previous.state = 'CLAIMED' then 'claimed while it was claimed' end
{%- endmacro %}
