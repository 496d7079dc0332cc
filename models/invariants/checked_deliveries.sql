{%- set checked = delta_outbox.verification() -%}
{%- set version = -1 if checked["nothing_new"] else checked["state_version"] | int -%}
select *
from {{ delta_outbox.as_of_version(ref("outbox_state"), version) }}
where {{ delta_outbox.may_be_touched(checked) }}
