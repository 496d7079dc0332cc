{{ delta_outbox.violations_of("broken_sequences") }}
