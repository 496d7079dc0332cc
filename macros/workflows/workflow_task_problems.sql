{% macro workflow_task_problems(workflow, where, task, problems) -%}
    {#-
        What is wrong with the row of a task, taken by itself.

        Arguments:
            workflow: mapping of `workflow_problems`, whose task it is
            where: text, `workflow.task`
            task: mapping with the row of the task, those of its route, that of its contract
            problems: list, takes a sentence per problem
    -#}
    {%- set calls = ["idempotent", "pessimistic_lock", "optimistic_lock", "black_box"] -%}
    {%- set all = calls + ["to_do"] -%}
    {%- set longest = 315360000.0 -%}  {#- seconds of ten years -#}
    {#- By column: the categories that have it, the rule that asks for it (none: it may be empty), another that may stand instead. -#}
    {%- set columns = {
        "expires_seconds": {"of": all, "needed": "expires_missing", "instead": "never_expires_why", "span": "expires"},
        "third_party": {"of": calls, "needed": "third_party_missing"},
        "time_limit_seconds": {"of": calls, "needed": "time_limit_missing", "span": "time_limit"},
        "settles_within_seconds": {
            "of": ["idempotent", "pessimistic_lock"], "needed": "settles_within_missing", "span": "settles_within",
        },
        "key_valid_for_seconds": {
            "of": ["idempotent"], "needed": "key_valid_for_missing", "instead": "key_never_forgotten_why",
            "span": "key_valid_for",
        },
        "key_never_forgotten_why": {"of": ["idempotent"]},
        "why_not_pessimistic": {"of": ["optimistic_lock"], "needed": "performance_reason_missing"},
        "compromise": {"of": ["black_box"], "needed": "compromise_missing"},
        "visibility": {
            "of": ["black_box"], "needed": "concerns_missing", "choices": ["self_evident", "traceable", "invisible"],
        },
        "necessity": {
            "of": ["black_box"], "needed": "concerns_missing", "choices": ["must_happen", "should_happen", "nice_to_have"],
        },
        "hurt": {"of": ["black_box"], "needed": "concerns_missing", "choices": ["own", "third_party", "customer"]},
        "risks": {
            "of": ["black_box"], "needed": "concerns_incomplete",
            "choices": ["reputation", "legal", "data_breach", "economic_loss"],
        },
        "decided_by": {"of": ["black_box"], "needed": "concerns_incomplete"},
        "why": {"of": ["black_box"], "needed": "concerns_incomplete"},
        "roles": {"of": ["to_do"], "needed": "roles_missing"},
        "due_seconds": {"of": ["to_do"], "span": "due"},
        "told_apart_by": {"of": ["to_do"]},
    } -%}
    {%- set row = task["row"] -%}
    {%- set category = row["category"] -%}
    {%- set seconds = {} -%}

    {%- if not delta_outbox.workflow_is_name(row["task"]) -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "task_name", "'" ~ row["task"] ~ "' is no name.", "Use lower-case words joined by `_`."
        ) -%}
    {%- endif -%}
    {%- if category not in all -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "no_category", "its category is " ~ delta_outbox.shown(category) ~ ".",
            "Write one of " ~ all | join(", ") ~ "."
        ) -%}
        {{- return("") -}}
    {%- endif -%}

    {%- for name, column in columns.items() -%}
        {%- set cell = row[name].strip() -%}
        {%- set instead = row[column["instead"]].strip() if "instead" in column else "" -%}
        {%- set number = delta_outbox.workflow_seconds(cell) if "span" in column else none -%}
        {%- if category not in column["of"] -%}
            {%- if cell -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "attribute_of_another_category",
                    "`" ~ name ~ "` has no effect on a task of category " ~ category ~ ".",
                    "Empty it, or choose the category that it belongs to."
                ) -%}
            {%- endif -%}
        {%- elif not cell and not instead -%}
            {%- if "needed" in column -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, column["needed"], "its `" ~ name ~ "` is empty.",
                    "Fill it in" ~ (", or write into `" ~ column["instead"] ~ "` why it never comes" if "instead" in column else "") ~ "."
                ) -%}
            {%- endif -%}
        {%- elif cell and instead -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, column["span"] ~ "_and_never", "it has `" ~ name ~ "` and `" ~ column["instead"] ~ "`.",
                "Empty one of them."
            ) -%}
        {%- elif cell and "span" in column -%}
            {%- if number is none -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, column["span"] ~ "_no_duration", "`" ~ name ~ "` is " ~ delta_outbox.shown(cell) ~ ".",
                    "Write a number of seconds."
                ) -%}
            {%- elif not 0 < number <= longest -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, column["span"] ~ "_out_of_range", "`" ~ name ~ "` is " ~ cell ~ ".",
                    "It must be more than 0 and at most ten years."
                ) -%}
            {%- else -%}
                {%- do seconds.update({column["span"]: number}) -%}
            {%- endif -%}
        {%- elif "choices" in column -%}
            {%- for word in (cell.split("|") if name == "risks" else [cell]) if word.strip() not in column["choices"] -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "concerns_no_members", "`" ~ name ~ "` is " ~ delta_outbox.shown(cell) ~ ".",
                    "Write " ~ ("some" if name == "risks" else "one") ~ " of " ~ column["choices"] | join(", ") ~ "."
                ) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}

    {%- if category in calls and row["third_party"].strip()
        and not delta_outbox.workflow_is_name(row["third_party"]) -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "third_party_name", "it calls '" ~ row["third_party"] ~ "', which is no name.",
            "Use lower-case words joined by `_`: it names the table [third_parties.NAME]."
        ) -%}
    {%- endif -%}
    {%- set lease = delta_outbox.workflow_seconds(workflow["row"]["lease_seconds"]) -%}
    {%- if lease and seconds.get("time_limit", 0) >= lease -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "time_limit_too_long",
            "its time limit is " ~ row["time_limit_seconds"] ~ " s, and the lease " ~ workflow["row"]["lease_seconds"] ~ " s.",
            "Shorten the limit, or give the workflow a longer lease: a claim must outlast its attempt."
        ) -%}
    {%- endif -%}
    {%- if "key_valid_for" in seconds and "time_limit" in seconds and "settles_within" in seconds
        and seconds["key_valid_for"] <= seconds["time_limit"] + seconds["settles_within"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "key_valid_too_short",
            "a key is valid for " ~ row["key_valid_for_seconds"] ~ " s, and one attempt may need "
            ~ "%g" % (seconds["time_limit"] + seconds["settles_within"]) ~ " s until it has settled.",
            "Shorten time_limit_seconds or settles_within_seconds, or choose another category."
        ) -%}
    {%- endif -%}
    {%- if "due" in seconds and "expires" in seconds and seconds["due"] >= seconds["expires"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "due_after_expiry", "it is due after " ~ row["due_seconds"] ~ " s, when it has expired.",
            "Let it expire later, or be due sooner."
        ) -%}
    {%- endif -%}
    {%- if category == "black_box" and row["compromise"] -%}
        {%- if modules.re.fullmatch("up_to_[01]?", row["compromise"]) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "up_to_too_few", "its compromise is " ~ row["compromise"] ~ ".",
                "Write at_most_once, or a number from 2."
            ) -%}
        {%- elif not modules.re.fullmatch("at_most_once|at_least_once|human|up_to_[1-9][0-9]{0,8}", row["compromise"]) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "compromise_no_object", "`compromise` is " ~ delta_outbox.shown(row["compromise"]) ~ ".",
                "Write at_most_once, at_least_once, up_to_2 or human."
            ) -%}
        {%- endif -%}
    {%- endif -%}

    {%- for role in row["roles"].split("|") if row["roles"].strip() and not role.strip() -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "role_name", "a role of " ~ delta_outbox.shown(row["roles"]) ~ " is empty.",
            "Write names joined by `|`."
        ) -%}
    {%- endfor -%}

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

    {%- set fields = workflow["row"]["start_fields"].split() + ["instance", "task", "visit", "workflow"] -%}
    {%- do delta_outbox.workflow_template_problems("identifier", row["identifier"], fields, where, problems) -%}
{%- endmacro %}
