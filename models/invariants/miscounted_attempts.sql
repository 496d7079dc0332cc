{{ delta_outbox.violations_of("miscounted_attempts") }}
