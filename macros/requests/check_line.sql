{% macro check_line(name, value, most, checked, problems) -%}
    {#-
        Check that an argument is one printable line, and given; the spaces around it do not count.
        Arguments: as in check_choice; most: characters.
    -#}
    {%- set line = value.strip() if value is string else "" -%}
    {%- set spaces = "[\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]" -%}
    {%- do checked.update({name: line}) -%}
    {%- if not 0 < line | length <= most or not modules.re.sub(spaces, " ", line).isprintable() -%}
        {%- do delta_outbox.refuse_argument(
            name, "must be one printable line of 1 to " ~ most ~ " characters", value, problems
        ) -%}
    {%- endif -%}
{%- endmacro %}
