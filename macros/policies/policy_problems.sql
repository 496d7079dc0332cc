{% macro policy_problems(rows, problems) -%}
    {#-
        Find everything that is wrong with delivery policies; the rules, and their words, are those of `PolicySet.parse`.

        Both sides are tested equal (tests/unit/lifecycle/test_policy_macro.py), so this uses nothing of dbt's but its modules.

        Arguments:
            rows: list of mappings, column name to cell (text or none), in the order of the file
            problems: list, takes a sentence per problem: row, column, rule and what came
    -#}
    {%- set number_form = "[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{1,3})?" -%}
    {%- set destination_form = "[A-Za-z][A-Za-z0-9_-]{0,62}" -%}
    {%- set route_form = "(?:[^{}]|\\{\\{|\\}\\}|\\{(?:event_type|event_id|ordering_key|partition_key)\\})*" -%}
    {%- set text_rule = "printable text of at most 255 characters" -%}
    {%- set columns = {
        "event_type": {"kind": "glob", "rule": "a shell glob with *, ? and [..]"},
        "destination": {
            "kind": "destinations",
            "rule": "one or more different destinations joined by |, each a letter followed by at most 62 letters, digits, _ or -",
        },
        "route": {
            "kind": "route",
            "rule": "a template with {event_type}, {event_id}, {ordering_key}, {partition_key}, and {{ or }} for a brace",
        },
        "format": {
            "kind": "choice",
            "choices": ["raw", "cloudevents-structured", "cloudevents-binary"],
            "rule": "raw or cloudevents-structured or cloudevents-binary",
        },
        "ordering": {"kind": "choice", "choices": ["strict", "none"], "rule": "strict or none"},
        "order_scope": {"kind": "choice", "choices": ["key", "destination"], "rule": "key or destination"},
        "max_attempts": {"kind": "whole", "low": 1, "high": 1000000, "rule": "a whole number from 1 to 1000000"},
        "max_crashes": {"kind": "whole", "low": 1, "high": 1000, "rule": "a whole number from 1 to 1000"},
        "expires_after_seconds": {
            "kind": "number", "low": 0.001, "high": 1000000000, "rule": "a number from 0.001 to 1000000000",
        },
        "lease_seconds": {"kind": "number", "low": 1, "high": 86400, "rule": "a number from 1 to 86400"},
        "backoff_initial_seconds": {"kind": "number", "low": 0, "high": 86400, "rule": "a number from 0 to 86400"},
        "backoff_multiplier": {"kind": "number", "low": 1, "high": 100, "rule": "a number from 1 to 100"},
        "backoff_max_seconds": {"kind": "number", "low": 0, "high": 2592000, "rule": "a number from 0 to 2592000"},
        "backoff_jitter": {"kind": "number", "low": 0, "high": 1, "rule": "a number from 0 to 1"},
        "on_dead": {"kind": "choice", "choices": ["continue", "hold"], "rule": "continue or hold"},
    } -%}
    {%- set globs = [] -%}
    {%- set unknown = [] -%}
    {%- set found = [] -%}

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
            {%- set flaw = namespace(rule=none) -%}
            {%- if not cell -%}
                {%- if name == "event_type" -%}
                    {%- do found.append(where ~ ", column `event_type`: must not be blank. Got: ''") -%}
                {%- endif -%}
            {%- elif column.kind == "choice" -%}
                {%- if cell not in column.choices -%} {%- set flaw.rule = column.rule -%} {%- endif -%}
            {%- elif column.kind in ("whole", "number") -%}
                {%- set number = (cell | float) + 0.0 if modules.re.fullmatch(number_form, cell) else none -%}
                {%- if number is none or not column.low <= number <= column.high
                    or (column.kind == "whole" and not number.is_integer()) -%}
                    {%- set flaw.rule = column.rule -%}
                {%- elif name in backoff -%}
                    {%- do backoff.update({name: number}) -%}
                {%- endif -%}
            {%- elif column.kind == "destinations" -%}
                {%- set names = [] -%}
                {%- for one in cell.split("|") -%}
                    {%- if one.strip() in names or not modules.re.fullmatch(destination_form, one.strip()) -%}
                        {%- set flaw.rule = column.rule -%}
                    {%- endif -%}
                    {%- do names.append(one.strip()) -%}
                {%- endfor -%}
            {%- elif cell | length > 255 or not cell.isprintable() -%}
                {%- set flaw.rule = column.rule ~ " (" ~ text_rule ~ ")" -%}
            {%- elif column.kind == "route" -%}
                {%- if not modules.re.fullmatch(route_form, cell) -%} {%- set flaw.rule = column.rule -%} {%- endif -%}
            {%- else -%}
                {%- set parts = [] -%}
                {%- set flaws = [] -%}
                {%- do delta_outbox.read_glob(cell, parts, flaws) -%}
                {%- if flaws -%} {%- set flaw.rule = column.rule ~ " (" ~ flaws[0] ~ ")" -%} {%- endif -%}
            {%- endif -%}
            {%- if flaw.rule is not none -%}
                {%- do found.append(
                    where ~ ", column `" ~ name ~ "`: must be " ~ flaw.rule ~ ". Got: " ~ delta_outbox.shown(cell)
                ) -%}
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

    {%- set first = {} -%}
    {%- for glob in globs -%}
        {%- set winner = first.get("*", first.get(glob)) -%}
        {%- if winner is not none -%}
            {%- do problems.append(
                "row " ~ loop.index ~ " (" ~ delta_outbox.shown(glob) ~ "), column `event_type`: "
                ~ "must not repeat an earlier row or follow `*`; row " ~ winner ~ " always wins"
            ) -%}
        {%- endif -%}
        {%- do first.setdefault(glob, loop.index) -%}
    {%- endfor -%}
    {%- if not globs or globs[-1] != "*" -%}
        {%- set last = delta_outbox.shown(globs[-1]) if globs else "no rows" -%}
        {%- do problems.append("last row, column `event_type`: must be `*`. Got: " ~ last) -%}
    {%- endif -%}
{%- endmacro %}
