"""What the demo tells a person, read by a test."""

from __future__ import annotations

import re


def number(text: str, name: str) -> int:
    """Return a number of the proof.

    Args:
        text: what the demo printed.
        name: of the line: "missing", "out of order", ...
    """
    return _first(rf"^\s*{name}\s+([\d,]+)\s", text)


def said(text: str, what: str) -> int:
    """Return the first number that stands before a word.

    Args:
        text: what the demo printed.
        what: the word: "appended", "published", ...
    """
    return _first(rf"\b(\d[\d,]*(?<!,)) {what}\b", text)


def _first(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, f"no {pattern} in:\n{text}"
    return int(found[1].replace(",", ""))
