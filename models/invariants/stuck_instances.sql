{{ delta_outbox.violations_of("stuck_instances") }}
