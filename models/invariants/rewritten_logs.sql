{{ delta_outbox.violations_of("rewritten_logs") }}
