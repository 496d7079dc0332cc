{{ delta_outbox.violations_of("false_identities") }}
