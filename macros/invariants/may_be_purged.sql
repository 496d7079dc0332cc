{% macro may_be_purged(plan, range) -%}
    {#-
        Whether a range can hold what a purge has removed. A purge that is not done may remove at any time; one that is
        concerns only a range that begins before it, and a replay that came too late for its event.

        Arguments:
            plan: mapping, the newest numbered write of `purge`; its `reached` covers the earlier ones
            range: the mapping of `invariant_range`, its news counted
    -#}
    {{ return(
        plan["step"] != "done"
        or range["whole"]
        or range["leaves_terminal"]
        or range["events_after"] < plan["reached"]["events"] | int
        or range["transitions_after"] < plan["reached"]["transitions"] | int
    ) }}
{%- endmacro %}
