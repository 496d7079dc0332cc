{% macro accept_violations(actor, reason) %}
    {#-
        Go on after violations that were looked into: `dbt run-operation accept_violations --args '{actor: ..., reason: ...}'`.

        Logs are never changed, so what is wrong in them stays. This moves the verified position over the range that the
        last build checked, with who decided it and why; the full audit still shows it.

        Arguments:
            actor: text, who decides
            reason: text, why
    -#}
    {%- for name, value in {"actor": actor, "reason": reason}.items() -%}
        {%- if value is not string or not value | trim -%}
            {{ exceptions.raise_compiler_error("accept_violations: `" ~ name ~ "` must be a text that is not empty. Got: " ~ (value | string)) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if execute -%}
        {%- set by = "accept_violations " ~ invocation_id -%}
        {%- do run_query(delta_outbox.verified_position_script(by, {"actor": actor | trim, "reason": reason | trim})) -%}
        {%- set ours -%}
            select number from {{ source("outbox", "outbox_progress") }}
            where
                writer = 'invariants'
                and planned_by = {{ delta_outbox.text_literal(by) }}
        {%- endset -%}
        {%- if not run_query(ours).rows | length -%}
            {{ exceptions.raise_compiler_error(
                "accept_violations: what the last build checked is verified or accepted already. Run `dbt build` and look at what it finds."
            ) }}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
