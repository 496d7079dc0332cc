{% materialization outbox_checked, adapter="spark" %}
    {#-
        What the invariants look at: a table, so that it is derived once and not by each of them; where nothing is new, a
        view without rows, which costs next to nothing to make and to read.
    -#}
    {%- set nothing_new = "outbox: nothing new" in sql -%}
    {%- set target_relation = this.incorporate(type="view" if nothing_new else "table") -%}
    {%- set existing = load_cached_relation(this) -%}

    {{ run_hooks(pre_hooks) }}
    {%- if existing is not none and existing.type != target_relation.type -%}
        {%- do adapter.drop_relation(existing) -%}
    {%- endif -%}
    {% call statement("main") -%}
        {% if nothing_new -%}
            create or replace view {{ target_relation }} as
        {%- else -%}
            create or replace table {{ target_relation }} using delta as
        {%- endif %}
        {{ sql }}
    {%- endcall %}
    {{ run_hooks(post_hooks) }}

    {{ return({"relations": [target_relation]}) }}
{% endmaterialization %}
