{{ delta_outbox.violations_of("wrong_follow_ups") }}
