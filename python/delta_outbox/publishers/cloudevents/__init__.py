"""CloudEvents: from an event to the payload and the headers of one."""
