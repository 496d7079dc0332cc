"""The fixtures of the kit."""

pytest_plugins = ["delta_outbox.testing.workflows.fixtures"]
