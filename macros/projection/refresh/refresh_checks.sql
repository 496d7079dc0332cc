{% macro refresh_checks(logs, latest) -%}
    {#-
        A part of `refresh_script`: refuse to go on from plans or commits that are lost; want a rebuild where nothing says what
        the projection stands at.

        Arguments:
            logs: list, the short names of the logs
            latest: mapping of the same names to versions
    -#}
    if plan_number < expected_number or (plan_number < applied and not rebuild_wanted) then
        set plan_number = raise_error('LOG_REWOUND: outbox_progress has lost plans of the projection. After a power cut run outbox refresh --rebuild; after a RESTORE or a DELETE restore it to the version before');
    end if;
    -- Nothing says where the projection stands: it was restored, or made anew.
    if applied = 0 and plan_number > 0 and not planned then
        set rebuild_wanted = true;
    end if;

    -- Another refresher has planned further meanwhile, or a log has lost what was planned: what comes in its place would be
    -- taken for it.
    if
        not rebuild_wanted
        and ({% for log in logs %}{{ log }}_to > {{ latest[log] }}{{ " or " if not loop.last }}{% endfor %})
    then
        begin
            declare exit handler for sqlexception begin
                set plan_number = raise_error('COMMITS_LOST: a log has lost commits that the projection was derived from. Run outbox refresh --rebuild');
            end;
            {%- for log in logs %}
            execute immediate 'select count(*) from {{ source("outbox", "outbox_" ~ log) }} version as of ' || {{ log }}_to into there;
            {%- endfor %}
        end;
    end if;
{%- endmacro %}
