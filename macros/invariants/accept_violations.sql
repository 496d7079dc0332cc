{% macro accept_violations(actor, reason, invariant=none) %}
    {#-
        Go on after violations that were looked into: `dbt run-operation accept_violations --args '{actor: ..., reason: ...}'`.

        Logs are never changed, so what is wrong in them stays; this says who decided to live with it and why. A full audit
        derives all violations anew, and shows them again.

        Arguments:
            actor, reason: text, who decides and why
            invariant: name of one rule; all where it is left out
    -#}
    {%- set relation = ref("invariant_violations") -%}
    {%- for name, value in {"actor": actor, "reason": reason}.items() -%}
        {%- if value is not string or not value | trim -%}
            {{ exceptions.raise_compiler_error("accept_violations: `" ~ name ~ "` must be a text that is not empty. Got: " ~ (value | string)) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if execute -%}
        {%- do delta_outbox.check_logs() -%}
        {%- set which = "accepted_at is null" ~ (" and invariant = " ~ delta_outbox.text_literal(invariant) if invariant is not none else "") -%}
        {%- set found = run_query("select invariant, count(*) as violations from " ~ relation ~ " where " ~ which ~ " group by invariant order by invariant") | list -%}
        {%- if not found -%}
            {{ exceptions.raise_compiler_error("accept_violations: there is no open violation" ~ (" of " ~ invariant if invariant is not none else "") ~ ". Run `dbt build` and look at what it finds.") }}
        {%- endif -%}
        {%- do run_query(
            "update " ~ relation ~ " set accepted_at = " ~ delta_outbox.now_utc()
            ~ ", accepted_by = " ~ delta_outbox.text_literal(actor | trim)
            ~ ", accepted_because = " ~ delta_outbox.text_literal(reason | trim) ~ " where " ~ which
        ) -%}
        {%- for row in found -%}
            {%- do log("accept_violations: " ~ row["invariant"] ~ ": " ~ row["violations"], info=true) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
