{{ delta_outbox.violations_of("guessed_endings") }}
