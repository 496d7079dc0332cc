"""The data files that commits have added to a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class AddedFile:
    """A data file of an append.

    Args:
        path: of the file.
        version: of the commit that added it: the arrival of its rows.
        rows: how many it has.
    """

    path: Path
    version: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Added:
    """What commits have added.

    Args:
        files: in the order of their commits.
        to: the last commit that was read.
    """

    files: Sequence[AddedFile]
    to: int

    @property
    def rows(self) -> int:
        """Return how many rows the files have."""
        return sum(file.rows for file in self.files)
