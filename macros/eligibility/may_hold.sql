{% macro may_hold() -%}
    {#-
        A condition on a DEAD delivery: it holds its key if its policy says `on_dead = hold`. What an operator has ended or
        killed lets its key go, and without a key there is nothing to hold.
    -#}
    (ordering_key is not null and reason <> 'operator' and kill_command_id is null)
{%- endmacro %}
