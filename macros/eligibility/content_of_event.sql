{% macro content_of_event(alias) -%}
    {#-
        What a row of the event log says, to compare two rows of one id: everything that a producer gives but the place in
        time (created_at, ordinal). Maps are compared as sets; none and empty are the same.

        Arguments:
            alias: of the event log
    -#}
    struct(
        {{ alias }}.event_type,
        {{ alias }}.payload,
        {{ alias }}.ordering_key,
        {{ alias }}.partition_key,
        {{ alias }}.available_at,
        coalesce(array_sort(map_entries({{ alias }}.headers)), array()) as headers,
        coalesce(array_sort(map_entries({{ alias }}.metadata)), array()) as metadata
    )
{%- endmacro %}
