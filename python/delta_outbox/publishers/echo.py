"""Removes an event's own content from what a destination answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from delta_outbox.core.secrets import HIDDEN
from delta_outbox.publishers.protocol import Event

WHOLE: Final = 8  # characters of a payload or a header's value that is not shown as a whole
RUN: Final = 16  # characters that the words and the content have in common
_SAMPLE: Final = RUN // 2  # any run holds one of every so many pieces of this length


def without_echo(text: str, event: Event) -> str:
    """Return the words of a destination without what they repeat of payload and headers.

    Its route, type, id and key may be repeated: they are on record beside the words. A shorter
    piece than 16 characters cannot be told from an ordinary word and stays.

    Args:
        text: one line.
        event: whose content it may repeat.
    """
    identity = (event.event_id, event.event_type, event.key, event.ordering_key, event.route)
    for content in _contents(event):
        if any(content in known for known in identity if known):
            continue
        if len(content) >= WHOLE:
            text = text.replace(content, HIDDEN)
        starts = range(0, len(text) - _SAMPLE + 1, _SAMPLE)
        if any(text[at : at + _SAMPLE] in content for at in starts):
            text = _without_runs(text, content, identity)
    return text


def _contents(event: Event) -> Iterator[str]:
    """Yield payload and values of headers as one line each, as the words are."""
    yield " ".join(event.payload.decode("utf-8", "replace").split())
    for value in (event.headers or {}).values():
        if value:
            yield " ".join(value.split())


def _without_runs(text: str, content: str, identity: tuple[str | None, ...]) -> str:
    kept: list[str] = []
    at = 0
    while at < len(text):
        end = at + RUN
        if end > len(text) or text[at:end] not in content:
            kept.append(text[at])
            at += 1
            continue
        while end < len(text) and text[at : end + 1] in content:
            end += 1
        run = text[at:end]
        is_known = any(run.strip(" '\"") in known for known in identity if known)
        kept.append(run if is_known else HIDDEN)
        at = end
    return "".join(kept)
