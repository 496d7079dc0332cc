{% macro request_row(kind, command_id, checked) -%}
    {#-
        A request as one row: the way its values, each a literal, reach the SQL.

        Arguments:
            kind: replay, kill or release
            command_id: text
            checked: mapping, as check_request fills it
    -#}
    select
        {{ delta_outbox.text_literal(kind) }} as kind,
        {{ delta_outbox.text_literal(command_id) }} as command_id,
        {%- for name in ["actor", "reason", "state", "event_type_regex", "error"] %}
        {% if checked.get(name) is none %}cast(null as string){% else %}{{ delta_outbox.text_literal(checked[name]) }}{% endif %} as {{ name }},
        {%- endfor %}
        {%- for name in ["event_ids", "claim_ids"] %}
        {% if checked.get(name) is none -%}
            cast(null as array<string>)
        {%- else -%}
            array({% for id in checked[name] %}{{ delta_outbox.text_literal(id) }}{{ ", " if not loop.last }}{% endfor %})
        {%- endif %} as {{ name }}{{ "," if not loop.last }}
        {%- endfor %}
{%- endmacro %}
