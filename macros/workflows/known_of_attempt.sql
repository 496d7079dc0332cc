{% macro known_of_attempt(reason, destination) -%}
    {#-
        What is known of the effect of an attempt of a task, by how it has ended; null while it lasts.

        Arguments:
            reason: expression, of the transition that has ended it
            destination: expression; nothing is called for `todo`
    -#}
    case
        when {{ reason }} is null then null
        when {{ reason }} = 'completed' then 'done'
        when {{ destination }} <> 'todo' and {{ reason }} in ('unknown', 'crashed', 'lease_expired', 'uncertain') then 'unsure'
        else 'not_done'
    end
{%- endmacro %}
