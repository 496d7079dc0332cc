{{ delta_outbox.violations_of("repeated_outcomes") }}
