{% test is_empty(model) %}
    {#-
        A relation has no rows: each row of a view of violations is one violation. The variable `invariant_severity`
        (error or warn) says what a row does to the build.
    -#}
    {{ config(severity=var("invariant_severity", "error")) }}
    select * from {{ model }}
{% endtest %}
