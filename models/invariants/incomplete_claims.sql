{{ delta_outbox.violations_of("incomplete_claims") }}
