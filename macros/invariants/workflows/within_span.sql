{% macro within_span(column, span) -%}
    {#-
        The condition that an instant lies among those of which this build checks what follows.

        Arguments:
            column: the instant
            span: mapping of `workflow_range`
    -#}
    {%- if not span["followed_to"] -%}
        false
    {%- else -%}
        {{ column }} < timestamp{{ delta_outbox.text_literal(span["followed_to"]) }}
        {%- if span["followed_after"] %} and {{ column }} >= timestamp{{ delta_outbox.text_literal(span["followed_after"]) }}{% endif -%}
    {%- endif -%}
{%- endmacro %}
