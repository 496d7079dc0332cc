{% macro note_doubts(state, range) -%}
    {#-
        Note how much of a range can break a rule: what is as plain as almost everything is needs no judge.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`; takes `doubtful_events`, `doubtful_keys`, `hidden_events` (new ones that
                nothing shows of what the range can have touched) and `judges_all`, whether everything is judged, because a
                claim has a wrong size or what is doubtful is too much to be sent to every executor
    -#}
    {%- set most_sent = 100000 -%}
    {%- set text -%}
        {{ delta_outbox.named_queries(delta_outbox.rows_of_range(state, range)) }}
        select e.*, k.*
        from (
            select count(*) as doubtful_events, count_if(is_hidden) as hidden_events, count_if(is_outdated) as outdated
            from ({{ delta_outbox.doubtful_events() | indent(12) }})
        ) as e
        cross join (select count(*) as doubtful_keys from ({{ delta_outbox.doubtful_keys() | indent(12) }})) as k
    {%- endset -%}
    {%- set found = (run_query(text) | list)[0] -%}
    {%- do range.update(found.dict()) -%}
    {%- do range.update({
        "judges_all": (
            range["has_wrong_size"]
            or found["outdated"] > 0
            or range["doubtful_events"] > most_sent
            or range["doubtful_keys"] > most_sent
        )
    }) -%}
{%- endmacro %}
