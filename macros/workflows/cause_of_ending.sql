{% macro cause_of_ending(reason) -%}
    {#-
        What has happened to a task, by the reason of its last transition; null where it has not ended.

        twin: python/delta_outbox/railway/routing.py::CAUSES

        Arguments:
            reason: expression
    -#}
    case {{ reason }}
        when 'completed' then 'decided'
        when 'rejected' then 'faulted'
        when 'exhausted' then 'faulted'
        when 'expired' then 'expired'
        when 'uncertain' then 'uncertain'
        when 'operator' then 'killed'
    end
{%- endmacro %}
