{% macro is_move(arguments) -%}
    {#-
        The condition that a kill lets its instance go on elsewhere than at the default exit.

        twin: python/delta_outbox/workflow_engine/derivation/moves.py::move_of

        Argument: expression, the arguments of the command; null where there is none.
    -#}
    (get_json_object({{ arguments }}, '$.late') is not null or get_json_object({{ arguments }}, '$.to') is not null)
{%- endmacro %}
