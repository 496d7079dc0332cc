"""Lines of events for tests, and which rules they break."""

from __future__ import annotations

import io
import json
from typing import Any

from delta_outbox.producer.json_lines import EventRows, read_lines


def read(*lines: str | bytes) -> EventRows:
    """Read these lines."""
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    return read_lines(io.BytesIO(b"\n".join(raw)))


def line_of(**fields: Any) -> str:
    """Write a line; `...` leaves a field out."""
    whole = {"event_id": "a", "event_type": "t", "payload": {}} | fields
    return json.dumps({name: value for name, value in whole.items() if value is not ...})


def broken(*lines: str | bytes) -> list[tuple[int, str, str]]:
    """Say which rule is broken in which line and field."""
    return [(one.line, one.field, one.rule) for one in read(*lines).rejections]
