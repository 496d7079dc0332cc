{% macro look_at_commits(name, log, after, range) -%}
    {#-
        Note the latest version of a log, and its new commits that are not appends.

        Arguments:
            name: short name of the log
            log: relation
            after: version up to which its commits were looked at, -1 for none
            range: mapping that takes `latest_versions` and `rewrites`
    -#}
    {%- set commits = delta_outbox.new_commits(log, after) -%}
    {%- set latest = commits[0]["version"] | int -%}
    {%- do range["latest_versions"].update({name: latest}) -%}
    {%- if latest < after -%}
        {%- do range["rewrites"].append({
            "log": log.identifier, "version": latest, "operation": "REPLACED",
            "problem": "the log was replaced by another table",
        }) -%}
    {%- endif -%}
    {%- for commit in commits if commit["version"] | int > after and not delta_outbox.appends_only(commit) -%}
        {%- do range["rewrites"].append({
            "log": log.identifier, "version": commit["version"] | int, "operation": commit["operation"],
            "problem": "a commit that is not an append",
            "committed_at": commit["timestamp"] | string, "details": commit["operationParameters"] | string,
        }) -%}
    {%- endfor -%}
{%- endmacro %}
