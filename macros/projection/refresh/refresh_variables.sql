{% macro refresh_variables(logs, applied, fold, rebuild) -%}
    {#-
        The variables of `refresh_script`, which its parts read and set.

        Arguments:
            logs: list, the short names of the logs
            applied: number, the plan that the projection stands at
            fold, rebuild: as of `refresh_script`
    -#}
    declare attempts int default 0;
    declare applied bigint default {{ applied }};
    declare done boolean default false;
    declare lost boolean default false;
    declare planned boolean default false;
    declare rebuild_wanted boolean default {{ rebuild | string | lower }};

    -- The newest plan: the range of each log is after the one version, up to the other.
    declare expected_number bigint default 0;
    declare plan_number bigint;
    declare plan_time timestamp;
    declare plan_rebuilds boolean;
    {%- for log in logs %}
    declare {{ log }}_after bigint;
    declare {{ log }}_to bigint;
    {%- endfor %}

    -- What its rows are made of.
    declare there bigint;
    declare is_empty boolean;
    {%- for log in logs %}
    declare {{ log }}_source string;
    {%- endfor %}
    declare tails string;
    declare news_days string;
    declare first_id string;
    declare last_id string;
    declare terminal_states string;
    declare arrivals string;
    declare positions string;
    declare touched string;
    declare statement string;
    declare plan_text string;
    declare fold_text string default r"
{{ fold }}
";
{%- endmacro %}
