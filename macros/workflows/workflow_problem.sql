{% macro workflow_problem(problems, where, rule, says, remedy) -%}
    {#-
        Note a problem.

        twin: python/delta_outbox/railway/problems.py::Problem

        Arguments:
            problems: list, takes the sentence
            where: text, `workflow` or `workflow.task`
            rule, says, remedy: texts
    -#}
    {%- do problems.append(where ~ ": [" ~ rule ~ "] " ~ says ~ " " ~ remedy) -%}
{%- endmacro %}
