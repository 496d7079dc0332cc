{% macro check_flag(name, value, checked, problems) -%}
    {#- Check that an argument is true or false; a text that says so is neither. Arguments: as in check_choice. -#}
    {%- do checked.update({name: value is true}) -%}
    {%- if value is not boolean -%}
        {%- do delta_outbox.refuse_argument(name, "must be true or false", value, problems) -%}
    {%- endif -%}
{%- endmacro %}
