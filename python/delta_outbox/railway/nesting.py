"""How deep the data of a decision may be nested: not every reader of JSON gets through it all."""

from __future__ import annotations

import re
from typing import Final

MOST_LEVELS: Final = 64
"""Of the data of a decision; what reads JSON has its own limit not far above."""
_TEXT_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')


def levels_of(text: str) -> int:
    """Return how deep a JSON text is nested, however deep that is.

    Args:
        text: of a JSON value.
    """
    level = deepest = 0
    for found in _TEXT_OR_BRACKET.finditer(text):
        level += bool(found[1]) - bool(found[2])
        deepest = max(deepest, level)
    return deepest
