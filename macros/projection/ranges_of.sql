{% macro ranges_of(rows, value, apart, condition) -%}
    {#-
        A few ranges that hold all values of some rows, as the text of a condition: values that lie near each other share
        one. Of more than a hundred it makes one from the first to the last.

        Arguments:
            rows: relation
            value: expression over it, a whole number
            apart: values that lie further apart than this begin a new range
            condition: expression for the text of one range, with {first} and {last} for its ends
        Result: a query of one text; `false` if there are no rows
    -#}
    select
        case
            when count(*) = 0 then 'false'
            when count(*) > 100 then {{ condition.replace("{first}", "min(first)").replace("{last}", "max(last)") }}
            else array_join(
                collect_list({{ condition.replace("{first}", "first").replace("{last}", "last") }}), ' or '
            )
        end
    from (
        select
            min(value) as first,
            max(value) as last
        from (
            select
                value,
                sum(starts) over (order by value) as island
            from (
                select
                    value,
                    if(value - lag(value) over (order by value) > {{ apart }}, 1, 0) as starts
                from (select distinct {{ value }} as value from {{ rows }})
            )
        )
        group by island
    )
{%- endmacro %}
