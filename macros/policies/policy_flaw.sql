{% macro policy_flaw(column, cell) -%}
    {#-
        The rule that a cell of the policy seed breaks, in words; none if it is right.

        Arguments:
            column: mapping of `policy_columns`
            cell: text, not blank
    -#}
    {%- set number_form = "[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{1,3})?" -%}
    {%- set destination_form = "[A-Za-z][A-Za-z0-9_-]{0,62}" -%}
    {%- set route_form = "(?:[^{}]|\\{\\{|\\}\\}|\\{(?:event_type|event_id|ordering_key|partition_key)\\})*" -%}
    {%- if column.kind == "choice" -%}
        {{- return(none if cell in column.choices else column.rule) -}}
    {%- elif column.kind in ("whole", "number") -%}
        {%- set number = (cell | float) + 0.0 if modules.re.fullmatch(number_form, cell) else none -%}
        {%- set is_right = number is not none and column.low <= number <= column.high
            and (column.kind == "number" or number.is_integer()) -%}
        {{- return(none if is_right else column.rule) -}}
    {%- elif column.kind == "destinations" -%}
        {%- set names = [] -%}
        {%- for one in cell.split("|") -%}
            {%- if one.strip() in names or not modules.re.fullmatch(destination_form, one.strip()) -%}
                {{- return(column.rule) -}}
            {%- endif -%}
            {%- do names.append(one.strip()) -%}
        {%- endfor -%}
        {%- if "todo" in names or "workflows" in names -%}
            {{- return("other destinations than todo and workflows: those are for tasks") -}}
        {%- endif -%}
    {%- elif cell | length > 255 or not cell.isprintable() -%}
        {{- return(column.rule ~ " (printable text of at most 255 characters)") -}}
    {%- elif column.kind == "route" -%}
        {{- return(none if modules.re.fullmatch(route_form, cell) else column.rule) -}}
    {%- else -%}
        {%- set parts, flaws = [], [] -%}
        {%- do delta_outbox.read_glob(cell, parts, flaws) -%}
        {%- if not flaws and cell.startswith("workflow:") -%}
            {{- return(
                "a shell glob that does not begin with 'workflow:': tasks have the policies of their workflows, "
                ~ "so leave the row out"
            ) -}}
        {%- endif -%}
        {{- return(column.rule ~ " (" ~ flaws[0] ~ ")" if flaws else none) -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}
