{% macro perform_pausing(kind, given) -%}
    {#-
        Perform `dbt run-operation pause|resume`: check, and append the command. A relay applies it with its next poll.

        Arguments:
            kind: pause or resume
            given: mapping, name of the argument to what came
    -#}
    {%- if execute -%}
        {%- do delta_outbox.check_logs() -%}
        {%- set checked, problems, known = {}, [], [] -%}
        {%- for row in run_query(delta_outbox.pausable_destinations()) -%} {%- do known.append(row["destination"]) -%} {%- endfor -%}
        {%- set actor = env_var("USER", "dbt") if given.actor is none else given.actor -%}
        {%- if given.destination not in known -%}
            {%- do delta_outbox.refuse_argument(
                "destination", "must be one that a policy names, or a third party: " ~ known | join(", "), given.destination, problems
            ) -%}
        {%- endif -%}
        {%- do delta_outbox.check_line("reason", given.reason, 500, checked, problems) -%}
        {%- do delta_outbox.check_line("actor", actor, 200, checked, problems) -%}
        {%- if problems -%}
            {%- do exceptions.raise_compiler_error(kind ~ ": " ~ problems | join("; ") ~ ".") -%}
        {%- endif -%}

        {%- set command_id = invocation_id | replace("-", "") -%}
        {%- do run_query(delta_outbox.append_pausing(
            source("outbox", "outbox_commands"),
            delta_outbox.pausing_row(kind, command_id, given.destination, checked),
            delta_outbox.now_utc()
        )) -%}
        {%- do log(kind ~ ": command " ~ command_id ~ ". See `outbox show " ~ command_id ~ "`.", info=true) -%}
    {%- endif -%}
{%- endmacro %}
