{% macro violations_of(invariant) -%}
    {#-
        The open violations of one rule, the text of its view.

        Arguments:
            invariant: name of the rule
    -#}
    select distinct
        {{ (delta_outbox.violation_columns() | list)[1:] | join(",\n        ") }}
    from {{ ref("invariant_violations") }}
    where
        invariant = '{{ invariant }}'
        and accepted_at is null
{%- endmacro %}
