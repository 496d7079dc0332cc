"""Which tests a run is of, and which of them one process takes.

Every test is in one of two tiers: those marked `rest` are left to `make test-all`, all others are
what `make test` runs. CI runs one part of the rest beside them, with each landing the next.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

FOLDERS = (
    "unit",
    "railway",
    "conformance",
    "mutants",
    "integration",
    "publishers",
    "faults",
    "acceptance",
)
LONG_FOLDERS = ("integration/long",)  # left out unless named; `make soak` has them
# Below them, what needs a process of its own. The other folders below one share its process.
OWN_PROCESSES = (
    "integration/connect",
    *LONG_FOLDERS,
    "publishers/kit",
    "faults/crashes",
    "faults/exactly_once",
    "faults/interrupts",
    "faults/railway",
    "faults/served",
    "faults/soak",
)

# The parts of the rest, for CI, each of 700 to 950 s of CPU time, of which two JVMs of integration
# need 150 to become warm; the demo under kills waits for a quarter of an hour. A file belongs to
# the first that fits.
PARTS = (
    ("acceptance/*", "faults/interrupts/*", "mutants/*", "publishers/*", "railway/*"),
    ("faults/railway/test_orders_demo.py",),
    ("faults/*",),
    (
        "integration/store/*",
        "integration/producer/*",
        "integration/consumer/*",
        "integration/cli/*",
    ),
    ("integration/relay/test_[a-h]*", "integration/operations/*"),
    ("integration/relay/test_[i-p]*",),
    ("integration/relay/*", "integration/delta/*"),
    ("integration/railway/test_[a-e]*",),
    ("integration/railway/*", "integration/runtime/*"),
    ("*",),
)

_ALL_REST = re.compile(r"^pytestmark = .*\bmark\.rest\b", re.MULTILINE)
_SOME_REST = re.compile(r"\bmark\.rest\b")


class Tier(StrEnum):
    """Which tests of a folder are meant, and the expression of pytest for them."""

    FIRST = "not rest"
    REST = "rest"
    ALL = ""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The test files of a folder that one process runs: it holds one SparkSession, of one kind.

    Args:
        name: the folder below tests/.
        files: those that hold tests of the tier, the longest first.
        tier: which of their tests are meant.
    """

    name: str
    files: Sequence[Path]
    tier: Tier


def suites(folder: str, tier: Tier, part: int | None = None) -> Iterator[Suite]:
    """Yield the suites of a folder that hold tests of a tier.

    Args:
        folder: below tests/.
        tier: which tests are meant.
        part: of the rest, from 1; all of it if left out.
    """
    files = [
        file
        for file in sorted((TESTS / folder).rglob("test_*.py"))
        if may_hold(file, tier) and part in (None, part_of(file))
    ]
    for name in sorted({suite_of(file) for file in files}):
        if name in LONG_FOLDERS and name != folder:
            continue
        own = [file for file in files if suite_of(file) == name]
        own.sort(key=lambda file: file.stat().st_size, reverse=True)
        yield Suite(name=name, files=own, tier=tier)


def suite_of(file: Path) -> str:
    """Return the folder below tests/ whose process runs a file.

    Args:
        file: of tests.
    """
    name = file.relative_to(TESTS)
    return next(
        (folder for folder in OWN_PROCESSES if name.is_relative_to(folder)),
        name.parts[0],
    )


def may_hold(file: Path, tier: Tier) -> bool:
    """Say whether a file may hold tests of a tier, by its text.

    Args:
        file: of tests.
        tier: which tests are meant.
    """
    text = file.read_text(encoding="utf-8")
    if tier is Tier.FIRST:
        return _ALL_REST.search(text) is None
    return tier is Tier.ALL or _SOME_REST.search(text) is not None


def part_of(file: Path) -> int:
    """Return the part of the rest that a file belongs to, from 1.

    Args:
        file: of tests.
    """
    name = file.relative_to(TESTS).as_posix()
    return next(
        number
        for number, patterns in enumerate(PARTS, start=1)
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    )
