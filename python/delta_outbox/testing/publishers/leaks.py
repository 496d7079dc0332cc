"""Finds secrets and content in what a publisher says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from delta_outbox.lifecycle.results import Delivered, to_json
from delta_outbox.testing.demands import holds

_RUN: Final = 16  # characters; a shorter piece cannot be told from an ordinary word


def words_of(result: object) -> str:
    """Return all text of a result.

    Args:
        result: whatever `publish` answered.
    """
    if isinstance(result, Delivered):
        return f"{to_json(result.receipt)} {result.outcome} {to_json(result.outcome_data)}"
    return str(getattr(result, "error", None) or "")


def says_nothing_of(content: str, results: Iterable[object], what: str) -> None:
    """Demand that results repeat nothing of the content of the events.

    Args:
        content: what payloads and headers held.
        results: of `publish`.
        what: the results in a word.
    """
    for result in results:
        words = words_of(result)
        holds(
            not any(piece in words for piece in _pieces(content)),
            f"{what}: {type(result).__name__} repeats payload or headers",
        )


def shows_none(secrets: Iterable[str], words: Iterable[str], what: str) -> None:
    """Demand that no secret is shown.

    Args:
        secrets: what must not be shown.
        words: texts.
        what: the texts in a word.
    """
    hidden = tuple(secrets)
    for text in words:
        holds(not any(one in text for one in hidden), f"{what}: a secret is shown")


def _pieces(content: str) -> Iterator[str]:
    for at in range(max(1, len(content) - _RUN + 1)):
        yield content[at : at + _RUN]
