"""The relay: takes eligible events, publishes them, and appends what happened."""

from delta_outbox.relay.relay import Relay
from delta_outbox.relay.summary import Mode, Summary

__all__ = ["Mode", "Relay", "Summary"]
