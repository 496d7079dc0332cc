{% macro miscounted_attempt() -%}
    {#- What is wrong where a counter does not follow from the one before: one attempt more per claim, never less in a lifecycle. -#}
    case
        when reason = 'replayed'
            then case
                when lifecycle <> previous.lifecycle + 1 then 'a replay that is not the next lifecycle'
                when attempt <> 0 or publish_attempts <> 0 or crashes <> 0 then 'a replay that does not count from 0'
            end
        when lifecycle <> previous.lifecycle then 'another lifecycle without a replay'
        when to_state = 'CLAIMED' and attempt <> previous.attempt + 1 then 'a claim that is not one attempt more'
        when to_state <> 'CLAIMED' and attempt <> previous.attempt then 'another attempt than the claim'
        when publish_attempts < previous.publish_attempts or crashes < previous.crashes then 'a counter that went down'
    end
{%- endmacro %}
