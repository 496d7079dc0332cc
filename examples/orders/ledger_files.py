"""Ledgers on disk: a file of lines of JSON for each third party, and for whoever answers items.

A line is written at once, by one call of the kernel, before anybody is answered. So what stands
there has happened, whoever was killed afterwards.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

THIRD_PARTIES: Final = ("shop", "warehouse", "invoicing", "terminal", "payments", "mail")


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """Something that a third party has done.

    Args:
        key: by which it was asked.
        what: it has done.
        at: when, in seconds since 1970.
    """

    key: str
    what: Any
    at: float


class Ledger:
    """What one third party was asked and has done.

    Args:
        path: of its file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.title = path, path.stem
        self.lines = list(read_lines(path))
        done = [one for one in self.lines if "done" in one]
        self.ledger = [Done(key=one["key"], what=one["what"], at=one["at"]) for one in done]
        self._by_key: dict[str, list[Any]] = defaultdict(list)
        for one in self.ledger:
            self._by_key[one.key].append(one.what)

    def effects(self, key: str) -> list[Any]:
        """Return all that was done for a key.

        Args:
            key: by which the third party was asked.
        """
        return list(self._by_key.get(key, ()))

    def asked(self) -> Iterator[Mapping[str, Any]]:
        """Yield the requests in their order: key, what went wrong with it, whether it may act."""
        return (one for one in self.lines if "asked" in one)


class Writer:
    """Appends lines to a file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **line: Any) -> None:
        """Append a line, with the time.

        Args:
            line: its fields.
        """
        text = json.dumps({"at": round(time.time(), 3), **line}, ensure_ascii=False)
        os.write(self._file, f"{text}\n".encode())


class Tail:
    """Reads what is added to a file.

    Args:
        path: of the file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield the whole lines that have come since the last time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield json.loads(line)


def read_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a file; none if it is not there.

    Args:
        path: of the file.
    """
    return Tail(path).lines()
