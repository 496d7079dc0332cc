{% macro pausable_destinations() -%}
    {#- What may be paused: the destinations of policies, what is paused or has a breaker, and the third parties in force. -#}
    select destination from {{ ref("outbox_destinations") }}
    union
    select third_party as destination from ({{ delta_outbox.tasks_in_force() | indent(4) }})
    where third_party <> ''
    order by destination
{%- endmacro %}
