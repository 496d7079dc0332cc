{% macro next_moment() -%}
    {#-
        When something happens to an open task by itself, at the latest: it is attempted, its lease ends, somebody is reminded,
        it expires. In the past: as soon as a relay runs. Null: nothing ever does.
    -#}
    case
        when delivery_state = 'PENDING' then coalesce(available_at, triggered_at)
        when held_by = 'todo' then least(if(due_at > {{ delta_outbox.now_utc() }}, due_at, null), expires_at)
        else lease_expires_at
    end
{%- endmacro %}
