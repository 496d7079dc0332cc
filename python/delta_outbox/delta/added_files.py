"""A data file that a commit has added to a log; workers know no more of commits than this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class AddedFile:
    """A data file of an append.

    Args:
        path: of the file.
        version: of the commit that added it: the arrival of its rows.
        rows: how many it has.
        partition: the values of the partition columns, which the file need not hold.
    """

    path: Path
    version: int
    rows: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
