{% macro all_invariants_held(results) -%}
    {#-
        Whether a run built every model below models/invariants and passed every test on one of them. A warning, or a part
        that was left out, is not enough.

        Arguments:
            results: what dbt hands to on-run-end
    -#}
    {%- set ended = {} -%}
    {%- for result in results -%}
        {%- do ended.update({result.node.unique_id: result.status | string}) -%}
    {%- endfor -%}
    {%- set held = [true] -%}
    {%- for node in graph.nodes.values() -%}
        {%- set model = graph.nodes.get(node.get("attached_node") or node["unique_id"], {}) -%}
        {%- if model.get("package_name") == "delta_outbox" and "invariants" in model.get("fqn", []) -%}
            {%- if ended.get(node["unique_id"]) not in ("success", "pass") -%}
                {%- do held.append(false) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(held | last) }}
{%- endmacro %}
