{{ delta_outbox.violations_of("endings_of_other_claims") }}
