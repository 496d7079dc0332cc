{% macro read_glob(glob, parts, flaws) -%}
    {#-
        Translate a shell glob into a regular expression for `rlike`.

        twin: python/delta_outbox/core/globs.py::glob_to_regex

        Arguments:
            glob: text
            parts: list, takes the pieces of the regular expression
            flaws: list, takes what is wrong: a `[` without its `]`, a range that runs backwards
    -#}
    {%- set token = "\\[(?:(!)([\\s\\S][^\\]]*)|([^!][^\\]]*))\\]|([\\s\\S])" -%}
    {%- do parts.append("^") -%}
    {%- for negated, others, members, char in modules.re.findall(token, glob) -%}
        {%- if char == "*" -%}
            {%- if parts[-1] != "[\\s\\S]*" -%} {%- do parts.append("[\\s\\S]*") -%} {%- endif -%}
        {%- elif char == "?" -%}
            {%- do parts.append("[\\s\\S]") -%}
        {%- elif char == "[" -%}
            {%- do flaws.append("a `[` needs its `]`") -%}
        {%- elif char -%}
            {%- do parts.append(delta_outbox.regex_char(char)) -%}
        {%- else -%}
            {%- do parts.append("[^" if negated else "[") -%}
            {%- for low, high, alone in modules.re.findall("([\\s\\S])-([\\s\\S])|([\\s\\S])", others or members) -%}
                {%- if low > high -%}
                    {%- do flaws.append("the range `" ~ low ~ "-" ~ high ~ "` runs backwards") -%}
                {%- elif alone or low == high -%}
                    {%- do parts.append(delta_outbox.regex_char(alone or low)) -%}
                {%- else -%}
                    {%- do parts.append(delta_outbox.regex_char(low) ~ "-" ~ delta_outbox.regex_char(high)) -%}
                {%- endif -%}
            {%- endfor -%}
            {%- do parts.append("]") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do parts.append("(?![\\s\\S])") -%}
{%- endmacro %}
