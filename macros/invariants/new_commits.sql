{% macro new_commits(log, after) -%}
    {#-
        What `describe history` tells of the commits of a log after a version, newest first; the newest of all where none
        is new.

        Arguments:
            log: relation
            after: version, -1 for all
    -#}
    {%- set glance = 50 -%}
    {%- set commits = run_query("describe history " ~ log ~ " limit " ~ glance).rows | list -%}
    {%- set head = commits[0]["version"] | int -%}
    {%- if commits | length == glance and head - glance > after -%}
        {%- set commits = run_query("describe history " ~ log ~ " limit " ~ (head - after)).rows | list -%}
    {%- endif -%}
    {{ return(commits) }}
{%- endmacro %}
