{% macro workflow_graph_problems(name, workflow, problems) -%}
    {#-
        What is wrong with where the tasks of a workflow lead. Notes on the workflow what follows each task (`follows`).

        Arguments:
            name: of the workflow
            workflow: mapping of `workflow_problems`, each of its rows right by itself
            problems: list, takes a sentence per problem
    -#}
    {%- set tasks, first, exit = workflow["tasks"], workflow["row"]["first_task"], workflow["row"]["default_exit"] -%}
    {%- set follows, around = {}, {} -%}
    {%- for task, one in tasks.items() -%}
        {%- do follows.update({task: []}) -%}
        {%- for row in one["route"] if row["to_task"] or row["to_event"] -%}
            {%- do follows[task].append(row["to_task"] or "event " ~ row["to_event"]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do workflow.update({"follows": follows}) -%}
    {%- set reached = delta_outbox.workflow_reach(first, follows) -%}
    {%- set endless = delta_outbox.workflow_endless(tasks) -%}
    {%- for task, causes in endless.items() -%} {%- do around.update({task: causes.values() | sum(start=[])}) -%} {%- endfor -%}

    {%- for task, one in tasks.items() -%}
        {%- set where = name ~ "." ~ task -%}
        {%- do delta_outbox.workflow_fallback_problems(where, one, tasks, exit, problems) -%}
        {%- if task != first and task not in reached -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "nothing_leads_here", "nothing leads to it.",
                "Let an outcome lead to it, or remove its rows."
            ) -%}
        {%- endif -%}
        {%- if task in delta_outbox.workflow_reach(task, around) -%}
            {%- set loop_of = [] -%}
            {%- for other in delta_outbox.workflow_reach(task, around) if task in delta_outbox.workflow_reach(other, around) -%}
                {%- do loop_of.append(other ~ " (" ~ endless[other] | join(", ") ~ ")") -%}
            {%- endfor -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "no_way_out", "an instance may go round for ever: " ~ loop_of | join(", ") ~ ".",
                "Let one of these lead out of the loop."
            ) -%}
        {%- endif -%}

        {%- if task in delta_outbox.workflow_reach(task, follows) -%}
            {%- do delta_outbox.workflow_loop_problems(where, one, problems) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
