{{ delta_outbox.violations_of("wrong_published_at") }}
