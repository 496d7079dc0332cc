"""Compare the code of another commit with this one: a case in turns, on the same machine.

Usage: python -m benchmarks.pairs CASE --before COMMIT [--rounds 5] [--size 1.0] [--of 1]

The commit is checked out into a temporary worktree, and each side is whole: its package, its dbt
project and its benchmarks. Both run with the libraries of this environment. To compare a commit
that does not have the case yet, or measures it otherwise, put the case on top of it (git
cherry-pick) and name that.

Prints, for everything that the case has a cost of, the median and the range of this to the commit
in CPU time per event and in seconds. Below 1: this one is faster.
Exit 0: compared; 1: a case failed; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import rounded
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed
from benchmarks.run import case_name, rounds_number, size_factor

ROOT: Final = Path(__file__).resolve().parents[1]
BEFORE, AFTER = "before", "after"

Costs = Mapping[str, Sequence[Mapping[str, float]]]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """How this code compares with the other, round by round: below 1 it is faster.

    Args:
        cpu: ratios of the CPU time per event.
        wall: ratios of the seconds.
    """

    cpu: tuple[float, ...]
    wall: tuple[float, ...]


def compare(rounds: Sequence[tuple[Costs, Costs]]) -> dict[str, Compared]:
    """Return the ratios of what both sides have a cost of.

    Args:
        rounds: the costs of the commit and those of this code.
    """
    first_before, first_after = rounds[0]
    return {
        name: Compared(
            cpu=tuple(_ratio(before[name], after[name], "cpu_seconds") for before, after in rounds),
            wall=tuple(_ratio(before[name], after[name], "seconds") for before, after in rounds),
        )
        for name in first_after
        if name in first_before
    }


def _ratio(
    before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]], of: str
) -> float:
    was, is_ = (
        statistics.median(one[of] / one["events"] for one in costs) for costs in (before, after)
    )
    return rounded(is_ / was)


def table(compared: Mapping[str, Compared]) -> str:
    """Return the ratios as a table.

    Args:
        compared: by what was measured.
    """
    lines = [("", "CPU per event", "range", "seconds", "range"), ("---", *["---:"] * 4)]
    for name, one in compared.items():
        shown = []
        for ratios in (one.cpu, one.wall):
            shown += [f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f} to {max(ratios):.3f}"]
        lines.append((name, *shown))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare what the arguments ask for.

    Args:
        argv: the arguments; those of this process if left out.
    """
    given = _parser().parse_args(argv)
    rounds: list[tuple[Costs, Costs]] = []
    try:
        with worktree(given.before) as before:
            _say_what_differs(given.before)
            sides = {BEFORE: before, AFTER: ROOT}
            for number in range(given.rounds):
                # Whoever comes second finds a warmer machine: they take turns.
                order = (BEFORE, AFTER) if number % 2 == 0 else (AFTER, BEFORE)
                costs = {
                    side: measure(sides[side], given.case, size=given.size, rounds=given.of)
                    for side in order
                }
                rounds.append((costs[BEFORE], costs[AFTER]))
                say(f"round {number + 1} of {given.rounds}")
                print(table(compare(rounds)), flush=True)
    except (BenchmarkFailed, subprocess.CalledProcessError) as error:
        say(f"FAILED: {error}")
        return 1
    if given.write:
        document = {name: vars(one) for name, one in compare(rounds).items()}
        given.write.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out for a block, beside this one.

    Args:
        commit: as git names it.
    """
    with tempfile.TemporaryDirectory(prefix="delta-outbox-before-") as folder:
        place = Path(folder).resolve() / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def measure(tree: Path, case: str, *, size: float, rounds: int) -> Costs:
    """Run a case of a tree, and return what it cost.

    Args:
        tree: the root of a checkout.
        case: its name.
        size: the size factor.
        rounds: of the case.

    Raises:
        BenchmarkFailed: it failed, or has no costs.
    """
    with tempfile.TemporaryDirectory(prefix="delta-outbox-pairs-") as folder:
        # Its own package comes before the one that is installed here.
        environment = {**os.environ, "PYTHONPATH": str(tree / "python")}
        _check_package(tree, environment)
        command = [
            *(sys.executable, "-m", "benchmarks.run", case),
            *("--size", str(size), "--rounds", str(rounds), "--results", folder),
        ]
        done = subprocess.run(command, cwd=tree, env=environment, check=False)
        file = Path(folder) / f"{case}.json"
        if done.returncode or not file.exists():
            raise BenchmarkFailed(f"{case} in {tree}: exit {done.returncode}")
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if not document.get("costs"):
        raise BenchmarkFailed(f"{case} of this commit has no costs: put the case on top of it.")
    costs: Costs = document["costs"]
    return costs


def _check_package(tree: Path, environment: Mapping[str, str]) -> None:
    """Demand that a process in a tree imports its package, not the one of this environment."""
    asked = [sys.executable, "-c", "import delta_outbox; print(delta_outbox.__file__)"]
    found = subprocess.run(
        asked, cwd=tree, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(found).is_relative_to(tree):
        raise BenchmarkFailed(f"The package is imported from {found}, not from {tree}.")


def _say_what_differs(commit: str) -> None:
    changed = _git("diff", "--name-only", commit, "--", "benchmarks", "constraints.txt").split()
    measuring = [name for name in changed if name.endswith((".py", ".txt"))]
    if measuring:
        say(f"differ as well, so what measures is not the same: {', '.join(measuring)}")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkFailed(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare the code of another commit with this.")
    parser.add_argument("case", type=case_name, metavar="CASE", help="of benchmarks/cases")
    parser.add_argument("--before", required=True, metavar="COMMIT", help="the other code")
    parser.add_argument("--rounds", type=rounds_number, default=5, help="runs of each side; 5")
    parser.add_argument("--size", type=size_factor, default=1.0, help="of the case; 1")
    parser.add_argument("--of", type=rounds_number, default=1, help="rounds within a run; 1")
    parser.add_argument("--write", type=Path, metavar="FILE", help="JSON with all ratios")
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: remove the worktree
    sys.exit(main())
