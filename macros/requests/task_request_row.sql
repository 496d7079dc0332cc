{% macro task_request_row(kind, command_id, checked) -%}
    {#-
        A request about workflows as one row: the way its values, each a literal, reach the SQL.

        Arguments:
            kind: text, that of the commands: extend, kill or assign
            command_id: text
            checked: mapping, as check_task_request fills it
    -#}
    select
        {{ delta_outbox.text_literal(kind) }} as kind,
        {{ delta_outbox.text_literal(command_id) }} as command_id,
        {%- for name in ["actor", "reason", "workflow", "task", "third_party", "role", "assignee", "late_task"] %}
        {% if checked[name] is none %}cast(null as string){% else %}{{ delta_outbox.text_literal(checked[name]) }}{% endif %} as {{ name }},
        {%- endfor %}
        {%- for name in ["instances", "task_ids"] %}
        {% if checked[name] is none -%}
            cast(null as array<string>)
        {%- else -%}
            array({% for one in checked[name] %}{{ delta_outbox.text_literal(one) }}{{ ", " if not loop.last }}{% endfor %})
        {%- endif %} as {{ name }},
        {%- endfor %}
        {%- for name in ["only_items", "only_unassigned"] %}
        {{ checked[name] | string | lower }} as {{ name }},
        {%- endfor %}
        {% if checked.to is none %}cast(null as timestamp){% else %}timestamp_micros({{ checked.to }}){% endif %} as extend_to,
        cast({{ "null" if checked.by_seconds is none else checked.by_seconds }} as int) as extend_by_seconds
{%- endmacro %}
