{% macro check_whole(name, value, least, most, checked, problems) -%}
    {#- Check a whole number; none if it is not given. Arguments: as in check_choice; least, most: between which it must lie. -#}
    {%- do checked.update({name: none}) -%}
    {%- if value is integer and value is not boolean and least <= value <= most -%}
        {%- do checked.update({name: value}) -%}
    {%- elif value is not none -%}
        {%- do delta_outbox.refuse_argument(name, "must be a whole number from " ~ least ~ " to " ~ most, value, problems) -%}
    {%- endif -%}
{%- endmacro %}
