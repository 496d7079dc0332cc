{{ delta_outbox.violations_of("double_claims") }}
