{% macro verification_select(state, events, transitions, commands, progress, relays, policy_rows) -%}
    {#-
        One row: what this build checks. The range begins after the verified position, the newest plan of the writer
        `invariants` in `outbox_progress`, and ends where the projection stands. Everything is checked with
        `--vars '{audit: full}'`, the first time, and where the verified position is of no use: the projection is another
        table, or it is so long ago that change feeds and old versions may be gone.

        Arguments:
            state: relation, the projection, refreshed
            events, transitions, commands, progress, relays: relations, the logs
            policy_rows: relation, the delivery policies
    -#}
    {%- set days_kept = 6 -%}
    {%- set range = {
        "number": 1, "whole": false, "nothing_new": true, "verified_at": none,
        "events_after": -1, "events_to": -1, "transitions_after": -1, "transitions_to": -1,
        "state_before": -1, "state_version": -1, "state_id": "", "projection_plan": 0,
        "leaves_terminal": false, "any_hold": false, "news_since": none, "news_from": none, "news_to": none,
    } -%}
    {%- set heads = {} -%}
    {%- set rewrites = [] -%}
    {%- set verified = {} -%}
    {%- if delta_outbox.checks_now() -%}
        {%- set commits = run_query("describe history " ~ state ~ " limit 50") -%}
        {%- do range.update({
            "state_version": commits.rows[0]["version"] | int,
            "state_id": run_query("describe detail " ~ state).rows[0]["id"],
        }) -%}
        {%- for commit in commits.rows if not range["projection_plan"] -%}
            {%- set mark = commit["userMetadata"] or "" -%}
            {%- if mark.startswith("outbox/projection/") -%}
                {%- do range.update({"projection_plan": mark[18:] | int}) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- set plans -%}
            select
                max(plan) filter (where writer = 'projection') as projected,
                max_by(plan, number) filter (where writer = 'invariants') as verified,
                coalesce(max(number) filter (where writer = 'invariants'), 0) as number,
                cast(max(planned_at) filter (where writer = 'invariants') as string) as verified_at,
                max(planned_at) filter (where writer = 'invariants')
                < {{ delta_outbox.now_utc() }} - interval {{ days_kept }} days as long_ago
            from {{ progress }}
            where
                writer = 'invariants'
                or (writer = 'projection' and number = {{ range["projection_plan"] }})
        {%- endset -%}
        {%- set found = run_query(plans).rows[0] -%}
        {%- if found["verified"] -%}
            {%- set verified = fromjson(found["verified"]) -%}
        {%- endif -%}
        {%- set projected = fromjson(found["projected"]) if found["projected"] else {"events": {"to": -1}, "transitions": {"to": -1}} -%}
        {%- set audit = var("audit", "") == "full" -%}
        {%- for name, log in {"events": events, "transitions": transitions, "commands": commands, "progress": progress, "relays": relays}.items() -%}
            {%- set after = -1 if audit or not verified else verified["heads"][name] | int -%}
            {%- set news = delta_outbox.new_commits(log, after) -%}
            {%- do heads.update({name: news[0]["version"] | int}) -%}
            {%- if heads[name] < after -%}
                {%- do rewrites.append({"log": log.identifier, "version": heads[name], "operation": "REPLACED"}) -%}
            {%- endif -%}
            {%- for commit in news if commit["version"] | int > after and not delta_outbox.appends_only(commit) -%}
                {%- do rewrites.append({
                    "log": log.identifier, "version": commit["version"] | int, "operation": commit["operation"],
                    "committed_at": commit["timestamp"] | string, "user_metadata": commit["userMetadata"],
                    "details": commit["operationParameters"] | string,
                }) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- set whole = (
            audit
            or not verified
            or found["long_ago"]
            or verified["state"]["id"] != range["state_id"]
            or verified["state"]["version"] | int > range["state_version"]
            or verified["events"]["to"] | int > projected["events"]["to"] | int
            or verified["transitions"]["to"] | int > projected["transitions"]["to"] | int
        ) -%}
        {%- do range.update({
            "number": found["number"] | int + 1,
            "whole": whole,
            "verified_at": found["verified_at"],
            "events_after": -1 if whole else verified["events"]["to"] | int,
            "events_to": projected["events"]["to"] | int,
            "transitions_after": -1 if whole else verified["transitions"]["to"] | int,
            "transitions_to": projected["transitions"]["to"] | int,
            "state_before": -1 if whole else verified["state"]["version"] | int,
        }) -%}
        {%- if (
            whole
            or range["events_to"] > range["events_after"]
            or range["transitions_to"] > range["transitions_after"]
        ) -%}
            {%- set news -%}
                select
                    t.*,
                    e.*,
                    (select count(*) > 0 from {{ policy_rows }} where on_dead = 'hold') as any_hold
                from (
                    select
                        count(*) as transitions,
                        cast(min(occurred_at) as string) as since,
                        coalesce(bool_or(from_state in ('PUBLISHED', 'DEAD')), false) as leaves_terminal
                    from {{ delta_outbox.rows_in_range(transitions, range["transitions_after"], range["transitions_to"]) }}
                ) as t
                cross join (
                    select
                        count(*) as events,
                        cast(min(created_date) as string) as news_from,
                        cast(max(created_date) as string) as news_to
                    from {{ delta_outbox.rows_in_range(events, range["events_after"], range["events_to"]) }}
                ) as e
            {%- endset -%}
            {%- set counted = run_query(news).rows[0] -%}
            {%- do range.update({
                "nothing_new": not (counted["transitions"] or counted["events"] or range["state_version"] != range["state_before"] and not whole),
                "leaves_terminal": counted["leaves_terminal"], "any_hold": counted["any_hold"],
                "news_since": counted["since"], "news_from": counted["news_from"], "news_to": counted["news_to"],
            }) -%}
        {%- elif range["state_version"] != range["state_before"] -%}
            {%- do range.update({"nothing_new": false}) -%}
        {%- endif -%}
    {%- endif -%}
    select
        {{ delta_outbox.text_literal(invocation_id) }} as invocation_id,
        cast({{ range["number"] }} as bigint) as number,
        cast({{ "timestamp" ~ delta_outbox.text_literal(range["verified_at"]) if range["verified_at"] else "null" }} as timestamp) as verified_at,
        {{ range["whole"] | string | lower }} as whole,
        {{ range["nothing_new"] | string | lower }} as nothing_new,
        {%- for name in ("events_after", "events_to", "transitions_after", "transitions_to", "state_before", "state_version", "projection_plan") %}
        cast({{ range[name] }} as bigint) as {{ name }},
        {%- endfor %}
        {{ delta_outbox.text_literal(range["state_id"]) }} as state_id,
        {{ range["leaves_terminal"] | string | lower }} as leaves_terminal,
        {{ range["any_hold"] | string | lower }} as any_hold,
        {%- for name in ("news_since", "news_from", "news_to") %}
        cast({{ delta_outbox.text_literal(range[name]) if range[name] else "null" }} as string) as {{ name }},
        {%- endfor %}
        from_json(
            {{ delta_outbox.text_literal(tojson(heads)) }},
            'struct<events:bigint,transitions:bigint,commands:bigint,progress:bigint,relays:bigint>'
        ) as heads,
        from_json(
            {{ delta_outbox.text_literal(tojson(verified.get("lanes", []) if not range["whole"] else [])) }},
            'array<struct<epoch:int,lane:int,sequence:bigint>>'
        ) as lanes,
        from_json(
            {{ delta_outbox.text_literal(tojson(rewrites)) }},
            'array<struct<log:string,version:bigint,operation:string,committed_at:string,user_metadata:string,details:string>>'
        ) as rewrites
{%- endmacro %}
