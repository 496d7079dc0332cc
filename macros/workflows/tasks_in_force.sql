{% macro tasks_in_force() -%}
    {#- The rows of `railway_tasks` by which instances start now, as `kept_rows` has them. -#}
    select * from ({{ delta_outbox.kept_rows("railway_tasks") | indent(4) }})
    where number = (select max(number) from {{ source("outbox", "outbox_progress") }} where writer = 'workflows')
{%- endmacro %}
