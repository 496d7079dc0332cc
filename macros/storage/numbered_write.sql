{% macro numbered_write(writer, number, tag=none) -%}
    {#-
        The options of an INSERT that Delta takes once for each number of a writer. They hold for this statement alone;
        as settings of the session they would number whatever others write in it meanwhile, and dbt's threads share one.
        What replaces rows replaces just those, whatever the session says of whole partitions.

        Arguments:
            writer: id of the writer, for Delta
            number: of the write; a placeholder, where a script fills it in
            tag: what the commit says of itself, its `userMetadata`
    -#}
    with (
        'txnAppId' = '{{ writer }}',
        'txnVersion' = '{{ number }}',
        'partitionOverwriteMode' = 'static'
        {%- if tag is not none %},
        'userMetadata' = '{{ tag }}'
        {%- endif %}
    )
{%- endmacro %}
