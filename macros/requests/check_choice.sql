{% macro check_choice(name, value, choices, checked, problems) -%}
    {#-
        Check that an argument is one of a few words; capitals do not matter.

        This and the other check_* macros keep the rules of Python, in the same words. They use nothing of dbt's but its modules.

        twin: python/delta_outbox/operations/argument_rules.py::Arguments

        Arguments:
            name: of the argument
            value: what came
            choices: list, the words in capitals
            checked: mapping, takes what is meant
            problems: list, takes what is wrong
    -#}
    {%- if value is string and value.upper() in choices -%}
        {%- do checked.update({name: value.upper()}) -%}
    {%- else -%}
        {%- do checked.update({name: choices[0]}) -%}
        {%- do delta_outbox.refuse_argument(name, "must be " ~ choices | join(" or "), value, problems) -%}
    {%- endif -%}
{%- endmacro %}
