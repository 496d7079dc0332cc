{{ delta_outbox.violations_of("overtaken_events") }}
