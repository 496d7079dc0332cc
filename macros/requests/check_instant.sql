{% macro check_instant(name, value, checked, problems) -%}
    {#-
        Check an instant: a text in ISO 8601 with an offset, or what YAML makes of one without quotes. Keeps microseconds
        since 1970; none if it is not given. Arguments: as in check_choice.
    -#}
    {%- set form = "([0-9]{4})-([0-9]{2})-([0-9]{2})[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\\.[0-9]{1,6})?)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])" -%}
    {%- set found = namespace(instant=none) -%}
    {%- if value is string -%}
        {%- set match = modules.re.fullmatch(form, value) -%}
        {%- if match -%}
            {%- set year, month, day = match.group(1) | int, match.group(2) | int, match.group(3) | int -%}
            {%- set leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) -%}
            {%- set days = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] -%}
            {%- if year >= 1 and 1 <= month <= 12 and 1 <= day and day <= days[month - 1] -%}
                {%- set found.instant = modules.datetime.datetime.fromisoformat(value) -%}
            {%- endif -%}
        {%- endif -%}
    {%- elif value.tzinfo is defined and value.tzinfo is not none and value.date is defined -%}
        {%- set found.instant = value -%}
    {%- endif -%}
    {%- do checked.update({name: none}) -%}
    {%- if found.instant is not none -%}
        {%- set epoch = modules.datetime.datetime.fromisoformat("1970-01-01T00:00:00+00:00") -%}
        {%- do checked.update({name: (found.instant - epoch) // modules.datetime.timedelta(microseconds=1)}) -%}
    {%- elif value is not none -%}
        {%- do delta_outbox.refuse_argument(
            name, "must be an instant with an offset, such as 2026-11-01T12:00:00Z", value, problems
        ) -%}
    {%- endif -%}
{%- endmacro %}
