{% macro refresh_attempt(statement, values) -%}
    {#-
        A part of `refresh_script`: run a numbered statement; `lost` says whether somebody else has used its number.

        Arguments:
            statement: SQL expression of its text
            values: mapping of what `filled` puts into it
    -#}
    set statement = {{ delta_outbox.filled(statement, values) }};
    begin
        declare exit handler for sqlstate '2D521' begin set lost = true; end;
        execute immediate statement;
    end;
{%- endmacro %}
