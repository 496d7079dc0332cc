"""What files have been delivered to a folder, read as they grow."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from benchmarks.commands import number_of
from benchmarks.results import BenchmarkFailed


class Delivered:
    """The events that a folder of a `jsonl` destination holds, by number.

    Args:
        folder: its `path`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}  # bytes of each file
        self.copies: Counter[int] = Counter()

    def read(self) -> int:
        """Read what came since the last time; return how many events are there."""
        for file in self._folder.rglob("*.jsonl"):
            with file.open("rb") as lines:
                lines.seek(self._read.get(file, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self._read[file] = self._read.get(file, 0) + len(line)
                    self.copies[number_of(json.loads(line)["event_id"])] += 1
        return len(self.copies)

    def check(self, count: int, *, once: bool = True) -> None:
        """Demand that the events of the numbers below so many are there.

        Args:
            count: how many.
            once: each a single time.

        Raises:
            BenchmarkFailed: they are not.
        """
        self.read()
        missing = count - sum(number < count for number in self.copies)
        if missing or len(self.copies) != count:
            raise BenchmarkFailed(f"{len(self.copies)} events were delivered, not {count}.")
        if once and self.copies.total() != count:
            raise BenchmarkFailed(f"{count} events were delivered in {self.copies.total()} copies.")
