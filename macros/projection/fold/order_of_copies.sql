{% macro order_of_copies(alias=none) -%}
    {#-
        The order of the rows of one event_id within one commit: ordinal (nulls last), created_at, then what they say. The
        change feed exposes no row ids, so content is the last tie-break (docs/decisions/0003-content-breaks-ties.md). Between
        commits the arrival decides.

        Arguments:
            alias: of a relation with the columns of events_tail_select; none where they need none
        Result: a list of expressions, for `order by` and for `struct` alike.
    -#}
    {%- set of = alias ~ "." if alias else "" -%}
    coalesce({{ of }}ordinal, 9223372036854775807), {{ of }}created_at, {{ of }}event_type, {{ of }}ordering_key, {{ of }}partition_key, {{ of }}available_at
{%- endmacro %}
