{% macro storage_scheme(location) -%}
    {#-
        Which kind of store a location is of: `file` for a path without a scheme.

        Arguments:
            location: text, as the catalog has it
    -#}
    {%- set found = modules.re.match("([A-Za-z][A-Za-z0-9+.-]*):", location) -%}
    {{ return(found[1] | lower if found else "file") }}
{%- endmacro %}
