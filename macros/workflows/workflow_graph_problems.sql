{% macro workflow_graph_problems(name, workflow, problems) -%}
    {#-
        What is wrong with where the tasks of a workflow lead: the rules of python/delta_outbox/railway/checks/paths.py.

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
        {%- set where, row, category = name ~ "." ~ task, one["row"], one["row"]["category"] -%}
        {%- set by_cause, outcomes = {}, {} -%}
        {%- for leg in one["route"] -%}
            {%- if leg["cause"] == "decided" -%} {%- do outcomes.update({leg["outcome"]: leg}) -%}
            {%- else -%} {%- do by_cause.update({leg["cause"]: leg}) -%} {%- endif -%}
        {%- endfor -%}
        {%- for cause, noun, needed in [
            ("faulted", "fault", category != "to_do"),
            ("expired", "expiry", not row["never_expires_why"]),
            ("uncertain", "uncertainty", category != "to_do"),
        ] if needed -%}
            {%- set leg = by_cause.get(cause, {"outcome": "", "to_task": "", "to_event": ""}) -%}
            {%- set chosen = outcomes.get(leg["outcome"]) -%}
            {%- if leg["outcome"] and not chosen -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "wrong_outcome", cause ~ " is '" ~ leg["outcome"] ~ "', which it cannot decide.",
                    "Its outcomes are " ~ outcomes | join(", ") ~ "; or leave it empty for the default exit."
                ) -%}
            {%- elif not leg["to_task"] and not leg["to_event"] -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, noun ~ "_leads_nowhere", "its " ~ noun ~ " leads nowhere.",
                    "Add a row of the cause " ~ cause ~ " with a target."
                ) -%}
            {%- elif chosen and (chosen["to_task"], chosen["to_event"]) != (leg["to_task"], leg["to_event"]) -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "wrong_outcome", cause ~ " is '" ~ leg["outcome"] ~ "', and leads elsewhere than it.",
                    "Write the target of that outcome, or name another outcome."
                ) -%}
            {%- elif not chosen and (leg["to_task"] or leg["to_event"] != exit) -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "wrong_exit",
                    "its " ~ noun ~ " has no outcome and leads to " ~ (leg["to_task"] or leg["to_event"]) ~ ".",
                    "Name an outcome; without one it leads to the default exit of the workflow."
                ) -%}
            {%- endif -%}
        {%- endfor -%}

        {%- set asked = by_cause.get("uncertain", {}).get("to_task") -%}
        {%- if row["compromise"] == "human" and (not asked or tasks[asked]["row"]["category"] != "to_do") -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "human_without_to_do",
                "its compromise is human, and its uncertainty does not lead to a To-Do item.",
                "Let it lead to a task of the category to_do."
            ) -%}
        {%- endif -%}
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
            {%- if "visit" not in delta_outbox.workflow_template(row["identifier"])["fields"] -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "loop_without_visit",
                    "it lies on a loop, and every visit has the identifier '" ~ row["identifier"] ~ "'.", "Add `{visit}`."
                ) -%}
            {%- endif -%}
            {%- if row["never_expires_why"] -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "loop_never_expires", "it lies on a loop and never expires.",
                    "Write a number of seconds into `expires_seconds`."
                ) -%}
            {%- endif -%}
            {%- if category == "to_do" and row["told_apart_by"] not in one["answers"] -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "loop_answers_look_alike",
                    "it lies on a loop, and its contract has no field that tells the visits apart.",
                    "Name one by `told_apart_by`, such as the id of the payment; else a late answer counts for the next visit."
                ) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
