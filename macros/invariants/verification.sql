{% macro verification() -%}
    {#- The row of the model `verification`: what this build checks. Without a build there is nothing to check. -#}
    {%- set relation = ref("verification") -%}
    {%- if delta_outbox.checks_now() -%}
        {{ return(run_query("select * except (heads, lanes, rewrites) from " ~ relation).rows[0]) }}
    {%- endif -%}
    {{ return({
        "nothing_new": true, "whole": false, "events_after": -1, "events_to": -1, "transitions_after": -1, "transitions_to": -1,
        "state_before": -1, "state_version": -1,
    }) }}
{%- endmacro %}
