{% macro false_identity(is_known) -%}
    {#-
        What is wrong where a transition is of something that is no event, or of a destination that the first claim did not name.

        Arguments:
            is_known: condition, the projection shows the delivery
    -#}
    case
        when previous is null and not {{ is_known }} then 'a transition of no event, or of a later copy'
        when fixes_destination and not fixed_first then 'a destination that the first claim did not fix'
    end
{%- endmacro %}
