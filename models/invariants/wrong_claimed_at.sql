{{ delta_outbox.violations_of("wrong_claimed_at") }}
