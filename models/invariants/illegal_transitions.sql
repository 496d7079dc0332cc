{{ delta_outbox.violations_of("illegal_transitions") }}
