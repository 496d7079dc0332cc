{% macro count_news(logs, range) -%}
    {#-
        Count what is new in a range, and note what the queries over it need as literals.

        Arguments:
            logs: the mapping of `log_relations`
            range: the mapping of `invariant_range`
    -#}
    {%- set transitions = delta_outbox.rows_in_range(logs.transitions, range["transitions_after"], range["transitions_to"]) -%}
    {%- set events = delta_outbox.rows_in_range(logs.events, range["events_after"], range["events_to"]) -%}
    {%- set text -%}
        {{ delta_outbox.named_queries(dict(
            delta_outbox.lanes_before(range),
            appends=delta_outbox.appends_in_range(transitions),
        )) }}
        select
            t.*,
            e.*,
            (select coalesce(bool_or(on_dead = 'hold'), false) from {{ ref("policy_rows") }}) as any_hold
        from (
            select
                coalesce(sum(transitions), 0) as transitions,
                cast(min(since) as string) as since,
                coalesce(bool_or(leaves_terminal), false) as leaves_terminal,
                coalesce(bool_or(interventions), false) as interventions,
                coalesce(bool_or(has_wrong_size), false) as has_wrong_size,
                coalesce(sum(broken_appends), 0) as broken_appends,
                to_json(array_distinct(flatten(collect_list(versions)))) as versions,
                to_json(collect_list(struct(epoch, lane, sequence))) as lanes
            from (
                select
                    epoch,
                    lane,
                    max(sequence) as sequence,
                    sum(transitions) as transitions,
                    min(occurred_at) as since,
                    bool_or(leaves_terminal) as leaves_terminal,
                    bool_or(interventions) as interventions,
                    bool_or(has_wrong_size) as has_wrong_size,
                    count(problem) as broken_appends,
                    array_distinct(flatten(collect_list(policy_versions))) as versions
                from appends
                group by epoch, lane
            )
        ) as t
        cross join (select count(*) as events from {{ events }}) as e
    {%- endset -%}
    {%- set row = (run_query(text) | list)[0] -%}
    {%- for name in (
        "events", "transitions", "since", "leaves_terminal", "interventions", "any_hold", "has_wrong_size", "broken_appends"
    ) -%}
        {%- do range.update({name: row[name]}) -%}
    {%- endfor -%}
    {%- set lanes = {} -%}
    {%- for lane in range["lanes_before"] + fromjson(row["lanes"]) -%}
        {%- set key = (lane["epoch"], lane["lane"]) -%}
        {%- if key not in lanes or lanes[key]["sequence"] < lane["sequence"] -%}
            {%- do lanes.update({key: lane}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do range.update({"versions": fromjson(row["versions"]), "lanes": lanes.values() | list}) -%}
{%- endmacro %}
