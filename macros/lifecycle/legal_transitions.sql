{% macro legal_transitions() -%}
    {#-
        The six legal transitions, each with the reasons that may cause it, as (from, to, [reasons]).

        twin: python/delta_outbox/lifecycle/states.py::REASONS
    -#}
    {{ return([
        ("PENDING", "CLAIMED", ["claimed"]),
        ("CLAIMED", "PUBLISHED", ["delivered", "completed", "expired", "exhausted", "rejected", "uncertain"]),
        ("CLAIMED", "PENDING", ["failed", "unknown", "crashed", "lease_expired", "released"]),
        ("CLAIMED", "DEAD", ["rejected", "exhausted", "expired", "operator"]),
        ("PUBLISHED", "PENDING", ["replayed"]),
        ("DEAD", "PENDING", ["replayed"]),
    ]) }}
{%- endmacro %}
