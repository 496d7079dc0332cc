{% macro policy_problems(rows, problems) -%}
    {#-
        Find everything that is wrong with delivery policies, in the words of Python. It uses nothing of dbt's but its modules.

        twin: python/delta_outbox/lifecycle/policy.py::parse

        Arguments:
            rows: list of mappings, column name to cell (text or none), in the order of the file
            problems: list, takes a sentence per problem: row, column, rule and what came
    -#}
    {%- set columns = delta_outbox.policy_columns() -%}
    {%- set globs, unknown, found = [], [], [] -%}
    {%- for row in rows -%}
        {%- set glob = ((row.get("event_type") if row.get("event_type") is not none else "") | string).strip() -%}
        {%- do globs.append(glob) -%}
        {%- set where = "row " ~ loop.index ~ " (" ~ delta_outbox.shown(glob) ~ ")" -%}
        {%- for name in row if name not in columns and name not in unknown -%}
            {%- do unknown.append(name) -%}
            {%- do problems.append(
                where ~ ", column " ~ delta_outbox.shown(name) ~ ": must be one of " ~ columns | join(", ")
            ) -%}
        {%- endfor -%}

        {%- set backoff = {"backoff_initial_seconds": 1.0, "backoff_max_seconds": 300.0} -%}
        {%- for name, column in columns.items() -%}
            {%- set cell = ((row.get(name) if row.get(name) is not none else "") | string).strip() -%}
            {%- set flaw = delta_outbox.policy_flaw(column, cell) if cell else none -%}
            {%- if flaw -%}
                {%- do found.append(
                    where ~ ", column `" ~ name ~ "`: must be " ~ flaw ~ ". Got: " ~ delta_outbox.shown(cell)
                ) -%}
            {%- elif cell and name in backoff -%}
                {%- do backoff.update({name: (cell | float) + 0.0}) -%}
            {%- elif not cell and name == "event_type" -%}
                {%- do found.append(where ~ ", column `event_type`: must not be blank. Got: ''") -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if backoff.backoff_max_seconds < backoff.backoff_initial_seconds -%}
            {%- do found.append(
                where ~ ", column `backoff_max_seconds`: must be at least backoff_initial_seconds ("
                ~ "%g" % backoff.backoff_initial_seconds ~ "). Got: " ~ "%g" % backoff.backoff_max_seconds
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do problems.extend(found) -%}
    {%- do delta_outbox.policy_order_problems(globs, problems) -%}
{%- endmacro %}
