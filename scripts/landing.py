"""Say which part of the rest of the tests CI runs with this landing.

`.ci/landing` holds a number that each landing raises by one, so that as many landings in a row as
there are parts try every test (scripts/tiers/suites.py).

Usage: landing.py part     print the part
       landing.py check    fail if the number was not raised since the base of this landing
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.tiers.suites import PARTS

FILE = Path(".ci") / "landing"
BASE = "LANDING_BASE"  # the variable that names the commit that a landing begins from
BRANCH = "origin/main"
GUESS = 4 * 60 * 60  # seconds; without either, what is so much older than HEAD was there before


def part_of(landing: int) -> int:
    """Return the part of the rest that a landing tries; they take turns.

    Args:
        landing: its number.
    """
    return landing % len(PARTS) + 1


def number() -> int:
    """Return the number of this landing, as the working tree has it.

    Raises:
        ValueError: the file holds something else.
    """
    return int(FILE.read_text(encoding="utf-8"))


def number_at(commit: str) -> int | None:
    """Return the number as of a commit; None if it had none.

    Args:
        commit: which one.

    Raises:
        ValueError: the file holds something else.
    """
    text = _git("show", f"{commit}:{FILE.as_posix()}")
    return None if text is None else int(text)


def base() -> str | None:
    """Return the commit that this landing begins from, None if nobody can tell."""
    named = os.environ.get(BASE)
    if named:
        return named
    head = _git("rev-parse", "HEAD")
    landed = _git("merge-base", "HEAD", BRANCH)
    if landed is not None and landed != head:
        return landed
    committed = _git("show", "--no-patch", "--format=%ct", "HEAD")
    if committed is None:
        return None
    return _git("rev-list", "--max-count=1", f"--before={int(committed) - GUESS}", "HEAD")


def check() -> str | None:
    """Return what is wrong with the number, None if nothing is."""
    now, commit = number(), base()
    before = None if commit is None else number_at(commit)
    if before is None or now > before:
        return None
    return (
        f"{FILE}: each landing raises the number by one, so that CI tries the next part of the "
        f"tests. It was {before} in {commit} and is {now}: write {before + 1}."
    )


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None if done.returncode == 0 else None


def main(argv: Sequence[str]) -> int:
    """Print the part, or what is wrong.

    Args:
        argv: `part` or `check`.
    """
    if list(argv) == ["part"]:
        print(part_of(number()))
        return 0
    if list(argv) == ["check"]:
        wrong = check()
        print(wrong or f"{FILE}: {number()}")
        return int(wrong is not None)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
