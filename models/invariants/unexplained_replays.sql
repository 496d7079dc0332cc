{{ delta_outbox.violations_of("unexplained_replays") }}
