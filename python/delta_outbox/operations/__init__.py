"""What operators ask for and see: requests that become commands, and questions about an outbox.

A request is checked (requests, by argument_rules), expanded to the deliveries that it gets
(request_expansion), shown (request_report) and appended as a command (command_log). Whoever applies
commands next does what it says (store/apply_commands.py).

- argument_rules: what an argument of a request may be
- command_life: what became of a command
- command_log: appends commands
- event_life: the whole life of one event, and what is left of a purged one
- inspection: counts, freshness, relays, listings
- inspection_filter: what a listing selects, and how it sorts
- lanes: asks for another number of lanes, and says how many there are
- maintenance: compaction, the removal of old files, purges
- outbox: the store, and what operators ask of it
- pauses: asks to pause or to resume a destination
- request_expansion: which deliveries a request gets, and the command that asks for them
- request_report: what is shown of a request
- requests: replay, kill and release, as checked values
"""

from __future__ import annotations

__all__: list[str] = []
