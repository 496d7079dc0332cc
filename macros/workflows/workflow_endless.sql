{% macro workflow_endless(tasks) -%}
    {#-
        Find the tasks that an instance may never leave: what happens to a task keeps an instance if all that can come of it is again such a task.

        twin: python/delta_outbox/railway/checks/paths.py::_endless

        Arguments:
            tasks: mapping, name to a mapping with the rows of its route
        Result: a mapping, task to a mapping of the causes that keep an instance to the tasks that follow.
    -#}
    {%- set kept = namespace(tasks={}) -%}
    {%- for task, one in tasks.items() -%}
        {%- set causes = {} -%}
        {%- for row in one["route"] if row["to_task"] or row["to_event"] -%}
            {%- do causes.setdefault(row["cause"], []).append(row["to_task"] or "event " ~ row["to_event"]) -%}
        {%- endfor -%}
        {%- do kept.tasks.update({task: causes}) -%}
    {%- endfor -%}
    {#- A round that takes no task away is the last; each of the others takes one at least. -#}
    {%- for _ in tasks -%}
        {%- set left = {} -%}
        {%- for task, causes in kept.tasks.items() -%}
            {%- set keeps = {} -%}
            {%- for cause, targets in causes.items() if not (targets | reject("in", kept.tasks) | list) -%}
                {%- do keeps.update({cause: targets}) -%}
            {%- endfor -%}
            {%- if keeps -%} {%- do left.update({task: keeps}) -%} {%- endif -%}
        {%- endfor -%}
        {%- set kept.tasks = left -%}
    {%- endfor -%}
    {{- return(kept.tasks) -}}
{%- endmacro %}
