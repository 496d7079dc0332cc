"""What is text, and what a media type, by the rules of CloudEvents 1.0.2."""

from __future__ import annotations

import re
from typing import Final

MEDIA_TYPE: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+.^_`|~-]+/[A-Za-z0-9!#$%&'*+.^_`|~-]+[ \t]*(?:;[\x20-\x7e\t]*)?"
)
# Control characters, halves of surrogate pairs, and what Unicode will never assign.
NO_STRING: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
