{% macro blocks_its_scope() -%}
    {#-
        A condition on a row of `deliveries_in_scopes`: it is not eligible itself, and blocks what comes after it in its order
        scope.
    -#}
    (scope is not null and not is_due and (state <> 'DEAD' or on_dead = 'hold'))
{%- endmacro %}
