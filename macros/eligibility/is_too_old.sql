{% macro is_too_old(age_from, now) -%}
    {#-
        A condition on an event with its policy `p.policy`: it is past the age that the policy allows, or null if that has none.

        Arguments:
            age_from: SQL expression, `age_from`
            now: SQL expression, the time of the question
    -#}
    unix_micros({{ now }}) - unix_micros({{ age_from }}) >= cast(p.policy.expires_after_seconds as double) * 1000000
{%- endmacro %}
