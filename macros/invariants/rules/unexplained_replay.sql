{% macro unexplained_replay(asked_for) -%}
    {#-
        What is wrong where a terminal state is left, or an operator is named, without a command that says who and why.

        Arguments:
            asked_for: condition, there is such a command
    -#}
    case
        when
            not coalesce(previous.state in ('PUBLISHED', 'DEAD'), false)
            and from_state not in ('PUBLISHED', 'DEAD')
            and reason not in ('replayed', 'operator')
            then null
        when reason not in ('replayed', 'operator') then 'a terminal state left without a replay'
        when coalesce(length(trim(actor)), 0) = 0 then 'nobody asked for it'
        when not {{ asked_for }} then 'no command with a reason asked for it'
    end
{%- endmacro %}
