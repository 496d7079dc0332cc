{% macro workflow_contract_problems(workflow, where, task, problems) -%}
    {#-
        What is wrong with the contract of a task. Notes on the task what an answer may name (`answers`).

        Arguments: those of `workflow_task_problems`.
    -#}
    {%- set category = task["row"]["category"] -%}
    {%- set contract = fromjson(task["contract"][0]["contract"]) if task["contract"] else none -%}
    {%- if category == "to_do" and (contract is not mapping or task["contract"] | length > 1) -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "contract_missing", "railway_contracts does not say what an answer looks like.",
            "Add one row with a JSON Schema."
        ) -%}
    {%- elif category != "to_do" and task["contract"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "attribute_of_another_category", "a contract has no effect on a task of category "
            ~ category ~ ".", "Remove its row of railway_contracts, or choose the category that it belongs to."
        ) -%}
    {%- elif contract is mapping and task["contract"][0]["version"] != workflow["row"]["version"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "contract_of_another_version",
            "its contract is of version " ~ task["contract"][0]["version"] ~ ", and the workflow of version "
            ~ workflow["row"]["version"] ~ ".", "Write the version of the workflow."
        ) -%}
    {%- endif -%}
    {%- do task.update({"answers": (contract.get("properties") or {}) | list if contract is mapping else []}) -%}
{%- endmacro %}
