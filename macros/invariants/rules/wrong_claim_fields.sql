{% macro wrong_claim_fields() -%}
    {#- What is wrong where the projection shows the fields of a claim without a claim, or a claim without them. -#}
    case
        when state = 'CLAIMED' and (claim_id is null or claimed_by is null or lease_expires_at is null)
            then 'claimed in the projection, without the fields of a claim'
        when state <> 'CLAIMED' and (claim_id is not null or claimed_by is not null or lease_expires_at is not null)
            then 'fields of a claim in the projection, without a claim'
    end
{%- endmacro %}
