{%- set checked = delta_outbox.verification() -%}
{%- set transitions = ref("checked_transitions") -%}
{%- set deliveries = ref("checked_deliveries") -%}
{%- set policies = ref("checked_policies") -%}
{%- set commands = source("outbox", "outbox_commands") -%}
{%- set position = "struct<arrival:bigint,ordinal:bigint,created_at:timestamp,event_id:string>" -%}
{%- set delivery = "position:" ~ position ~ ",event_id:string,arrival:bigint,destination:string" -%}
{%- if checked["nothing_new"] -%}
{{ delta_outbox.no_rows({
    "policy_version": "string", "ordering_key": "string", "scope": "string",
    "since": "struct<epoch:int,sequence:bigint>", "until": "struct<epoch:int,sequence:bigint>",
    "since_exclusive": "boolean",
    "wait": "struct<" ~ delivery ~ ",state:string>",
    "claim": "struct<" ~ delivery ~ ",claim_id:string,occurred_at:timestamp>"
}) }}
{%- else -%}
    {{ delta_outbox.checked_order_select(transitions, deliveries, policies, commands) }}
{%- endif -%}
