{% macro rows_in_force(seed) -%}
    {#- The rows of a seed of workflows by which instances start now. Argument and columns: those of `kept_rows`. -#}
    select * from ({{ delta_outbox.kept_rows(seed) | indent(4) }})
    where number = (select max(p.number) from {{ source("outbox", "outbox_progress") }} as p where p.writer = 'workflows')
{%- endmacro %}
