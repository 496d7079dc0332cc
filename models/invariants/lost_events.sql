{{ delta_outbox.violations_of("lost_events") }}
