{% macro check_glob(name, value, checked, problems) -%}
    {#-
        Check a shell glob and keep the regular expression that it means as `<name>_regex`; none if it is not given.
        Arguments: as in check_choice.
    -#}
    {%- set rule = "must be an event type or a shell glob" -%}
    {%- do checked.update({name ~ "_regex": none}) -%}
    {%- if value is none -%}
    {%- elif value is not string or not 0 < value | length <= 500 or modules.re.search("[\\ud800-\\udfff]", value) -%}
        {%- do delta_outbox.refuse_argument(name, rule ~ " of 1 to 500 characters", value, problems) -%}
    {%- else -%}
        {%- set parts = [] -%}
        {%- set flaws = [] -%}
        {%- do delta_outbox.read_glob(value, parts, flaws) -%}
        {%- if flaws -%}
            {%- do delta_outbox.refuse_argument(name, rule ~ ": " ~ flaws[0], value, problems) -%}
        {%- else -%}
            {%- do checked.update({name ~ "_regex": parts | join("")}) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
