{% macro ddl_violations(relation) -%}
    {#- The table of what broke a rule: derived, small, and kept until somebody accepts it. -#}
    create table if not exists {{ relation }} (
        invariant string not null comment 'The rule; the view of this name shows its violations',
        problem string not null comment 'What is wrong, in words',
        event_id string,
        arrival bigint,
        destination string,
        epoch int,
        lane int,
        sequence bigint comment 'The append that broke the rule',
        occurred_at timestamp,
        details string comment 'What the rule compared, as JSON',
        found_at timestamp not null comment 'When a build found it (UTC)',
        accepted_at timestamp comment 'When somebody decided to go on (UTC)',
        accepted_by string,
        accepted_because string
    )
    using delta
    tblproperties ('delta.enableRowTracking' = 'false', 'delta.checkpointInterval' = '50')
{%- endmacro %}
