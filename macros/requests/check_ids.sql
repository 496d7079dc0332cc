{% macro check_ids(name, value, required, checked, problems) -%}
    {#-
        Check a list of ids and keep each once; none if it is not given. An empty list is refused: whoever computed it did
        not mean "all of them". Arguments: as in check_choice; required: they must be given.
    -#}
    {%- set rule = "must be a list of 1 to 10000 ids" -%}
    {%- set bad = [] -%}
    {%- do checked.update({name: none}) -%}
    {%- if value is none and not required -%}
    {%- elif value is string or value is mapping or value is not sequence -%}
        {%- do delta_outbox.refuse_argument(name, rule, value, problems) -%}
    {%- elif not 0 < value | length <= 10000 -%}
        {%- do delta_outbox.refuse_argument(name, rule, value | length ~ " ids", problems) -%}
    {%- else -%}
        {%- for one in value if one is not string or not 0 < one | length <= 1000 or modules.re.search("[\\ud800-\\udfff]", one) -%}
            {%- do bad.append(one) -%}
        {%- endfor -%}
        {%- if bad -%}
            {%- do delta_outbox.refuse_argument(name, rule ~ ", each text of 1 to 1000 characters", bad[0], problems) -%}
        {%- else -%}
            {%- do checked.update({name: value | unique(case_sensitive=true) | list}) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
