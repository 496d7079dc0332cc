{% macro glob_to_regex(pattern) -%}
    {#- A regular expression that matches what a shell glob matches: `*`, `?`, `[...]` and `[!...]`; everything else is literal. The Python twin is tested equal. -#}
    concat(
        '^',
        replace(
            replace(
                replace(
                    regexp_replace({{ pattern }}, '([.\\\\+(){}|^$])', '\\\\$1'),
                    '[!', '[^'
                ),
                '*', '.*'
            ),
            '?', '.'
        ),
        '$'
    )
{%- endmacro %}
