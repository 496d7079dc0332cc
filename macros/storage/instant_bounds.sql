{% macro instant_bounds() -%}
    {#-
        The first and the last instant that an outbox knows, in microseconds since 1970: those of the years 1 to 9999 (UTC),
        which Python and every protocol's text form can write.

        twin: python/delta_outbox/core/instants.py::FIRST_INSTANT
    -#}
    {{ return([-62135596800000000, 253402300799999999]) }}
{%- endmacro %}
