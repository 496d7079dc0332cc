{% macro check_part(name, value, checked, problems) -%}
    {#- Check a text that is looked for, as it is; none if it is not given. Arguments: as in check_choice. -#}
    {%- do checked.update({name: value}) -%}
    {%- if value is not none and not (
        value is string and 0 < value | length <= 500 and not modules.re.search("[\\ud800-\\udfff]", value)
    ) -%}
        {%- do delta_outbox.refuse_argument(name, "must be text of 1 to 500 characters", value, problems) -%}
    {%- endif -%}
{%- endmacro %}
