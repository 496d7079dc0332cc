"""The folder of a soak: what it needs to go on after it was ended.

run.json          seed, kills, commit
appends.jsonl     ranges of event numbers: begun, acknowledged
stretches.jsonl   when the soak was running
kills/0001.json   one file per finished kill
home, kafka       the outbox and the broker's data
report.json       the end
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scripts.soak.evidence import Kill


class NotOurs(Exception):
    """The folder holds something that is not to be removed."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a soak was begun with.

    Args:
        seed: decides which kills are made, and when.
        kills: how many.
        commit: of the code.
    """

    seed: int
    kills: int
    commit: str


class Folder:
    """Reads and writes the state of a soak.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    @property
    def home(self) -> Path:
        """Return the home of the outbox."""
        return self.root / "home"

    @property
    def kafka(self) -> Path:
        """Return where the broker keeps its data."""
        return self.root / "kafka"

    @property
    def said(self) -> Path:
        """Return the folder of what the processes say on standard error."""
        return self.root / "said"

    @property
    def ready(self) -> Path:
        """Return the file that says that the outbox is made."""
        return self.root / "ready"

    @property
    def report(self) -> Path:
        """Return the file of the report."""
        return self.root / "report.json"

    @property
    def warehouse(self) -> Path:
        """Return the folder of the tables."""
        return self.home / "warehouse" / "outbox.db"

    @property
    def so_far(self) -> Path:
        """Return the file of the report of a soak whose time was up before its last kill."""
        return self.root / "so-far.json"

    def begin(self, terms: Terms) -> Terms:
        """Go on with what is there unless it has ended, or begin anew.

        Args:
            terms: of a new soak.

        Returns:
            Those that hold: of the soak that is there, if it has not ended.

        Raises:
            NotOurs: the folder holds something else.
        """
        file = self.root / "run.json"
        if file.is_file() and not self.report.is_file():
            return Terms(**json.loads(file.read_text(encoding="utf-8")))
        if file.is_file():
            shutil.rmtree(self.root)
        elif self.root.exists() and any(self.root.iterdir()):
            raise NotOurs(f"{self.root}: must be new, empty or the folder of a soak")
        for folder in (self.root / "kills", self.said):
            folder.mkdir(parents=True)
        _write(file, asdict(terms))
        return terms

    # --- appends -----------------------------------------------------------------------------

    def note_append(self, first: int, count: int, *, done: bool) -> None:
        """Write down that an append begins, or that it was acknowledged.

        Args:
            first: number of the first event.
            count: how many follow on it, itself included.
            done: it was acknowledged.
        """
        _add(self.root / "appends.jsonl", {"first": first, "count": count, "done": done})

    def next_number(self) -> int:
        """Return a number that no event has or may have."""
        appends = _lines(self.root / "appends.jsonl")
        return max((line["first"] + line["count"] for line in appends), default=0)

    def acknowledged(self) -> Iterator[int]:
        """Yield the numbers of the events whose append was acknowledged."""
        for line in _lines(self.root / "appends.jsonl"):
            if line["done"]:
                yield from range(line["first"], line["first"] + line["count"])

    # --- stretches and kills -----------------------------------------------------------------

    def note_time(self, *, begins: bool = False) -> None:
        """Write down that the soak runs now.

        Args:
            begins: it does so from now on.
        """
        _add(self.root / "stretches.jsonl", {"at": time.time(), "begins": begins})

    def stretches(self) -> list[tuple[float, float]]:
        """Return from when to when the soak ran."""
        found: list[tuple[float, float]] = []
        for line in _lines(self.root / "stretches.jsonl"):
            began = line["at"] if line["begins"] or not found else found[-1][0]
            if not line["begins"] and found:
                found.pop()
            found.append((began, line["at"]))
        return found

    def seconds(self) -> float:
        """Return for how long the soak has run."""
        return sum(end - begin for begin, end in self.stretches())

    def note_kill(self, kill: Kill) -> None:
        """Write down a kill.

        Args:
            kill: it was made.
        """
        _write(self.root / "kills" / f"{kill.number:04}.json", asdict(kill))

    def kills(self) -> list[Kill]:
        """Return the kills, each with the end of its stretch."""
        stretches = self.stretches()
        found = []
        for file in sorted((self.root / "kills").glob("*.json")):
            kill = Kill(**json.loads(file.read_text(encoding="utf-8")))
            until = next((end for begin, end in reversed(stretches) if begin <= kill.at), None)
            found.append(replace(kill, until=until))
        return found


def _write(file: Path, document: Mapping[str, Any]) -> None:
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(document), encoding="utf-8")
    draft.replace(file)


def _add(file: Path, document: Mapping[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(document) + "\n")


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
