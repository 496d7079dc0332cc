{% macro wrong_time(column, state) -%}
    {#-
        What is wrong where a time is given in another state than its own, or is missing in its own.

        Arguments:
            column: claimed_at or published_at
            state: the state that it belongs to
    -#}
    case
        when state = '{{ state }}' and {{ column }} is null then '{{ state }} without {{ column }}'
        when state <> '{{ state }}' and {{ column }} is not null then '{{ column }} in another state than {{ state }}'
    end
{%- endmacro %}
