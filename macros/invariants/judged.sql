{% macro judged(problems) -%}
    {#-
        The problems of one row as rows, one per rule that it breaks, for LATERAL VIEW.

        Arguments:
            problems: list of (name of the invariant, expression for what is wrong, null if nothing is)
        Result: an expression for an array of structs with invariant and problem.
    -#}
    filter(
        array(
            {%- for invariant, problem in problems %}
            named_struct(
                'invariant', '{{ invariant }}',
                'problem', {{ problem | indent(16) }}
            ){{ "," if not loop.last }}
            {%- endfor %}
        ),
        one -> one.problem is not null
    )
{%- endmacro %}
