{% macro record_verification(progress, range) -%}
    {#-
        An SQL script that writes down how far the logs were checked, at the number that the build expected. Where
        another build was faster, nothing is written, and the range is checked again.

        Arguments:
            progress: relation, the log of plans
            range: the mapping of `invariant_range`
    -#}
    {%- set plan = {
        "whole": range["whole"],
        "events": {"after": range["events_after"], "to": range["events_to"]},
        "transitions": {"after": range["transitions_after"], "to": range["transitions_to"]},
        "state": {"id": range["state_id"], "version": range["state_version"]},
        "heads": range["latest_versions"],
        "lanes": range["lanes"],
        "workflows": range["workflows"],
    } -%}
    {{- delta_outbox.append_plan(progress, "invariants", range["number"], plan) -}}
{%- endmacro %}
