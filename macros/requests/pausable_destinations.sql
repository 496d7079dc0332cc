{% macro pausable_destinations() -%}
    {#-
        What may be paused: the destinations of policies, what is paused or has a breaker, and the third parties of workflows, former
        ones too: a relay with older code goes on by them.
    -#}
    select destination from {{ ref("outbox_destinations") }}
    union
    select third_party as destination from ({{ delta_outbox.kept_rows("railway_tasks") | indent(4) }})
    where third_party <> ''
    order by destination
{%- endmacro %}
