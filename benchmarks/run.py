"""Measure what the project promises about speed, and write the results down.

Usage: python -m benchmarks.run [NAME ...] [--size 1.0] [--rounds 3] [--results FOLDER]

Names: drain, first_drain, small_drains, batch_sizes, history, backlog, large_payloads, trickle,
hot_key, failing, exceptions, scheduled, two_destinations, dead_destination, two_relays, recovery,
old_retry, checks, publishers, cold, served, workflows; without a name, all of them, which takes
hours.
`make bench` is `drain` at a twentieth.
Each case checks what was delivered, and fails if anything is missing, twice, altered, out of order
or not on record.
Exit 0: measured; 1: a case failed; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.machine import machine, versions
from benchmarks.progress import say
from benchmarks.results import FOLDER, BenchmarkFailed, save
from benchmarks.tables import TABLES

from delta_outbox.cli.logs import quieten_pyspark

CASES: Final = tuple(TABLES)


def main(argv: Sequence[str] | None = None) -> int:
    """Run cases one after the other.

    Args:
        argv: the arguments; those of this process if left out.
    """
    given = _parser().parse_args(argv)
    quieten_pyspark()
    failed = False
    for name in given.names or CASES:
        started = time.monotonic()
        say(f"{name}, size {given.size:g}, {given.rounds} rounds")
        found, known = machine(), versions()  # first: a package that is missing costs no hour
        try:
            case = importlib.import_module(f"benchmarks.cases.{name}")
            measured = case.run(size=given.size, rounds=given.rounds)
        except Exception as error:  # noqa: BLE001 - the next case may be measured all the same
            if not isinstance(error, BenchmarkFailed):
                traceback.print_exc()
            say(f"{name}: FAILED: {error}")
            failed = True
            continue
        others = {key: measured.pop(key) for key in ("postgresql",) if key in measured}
        file = save(
            given.results,
            name,
            size=given.size,
            measured=measured,
            machine=found,
            versions={**known, **others},
        )
        print(TABLES[name](measured))
        say(f"{name}: {time.monotonic() - started:.0f} s, {file.name}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure how fast the outbox is.")
    parser.add_argument("names", nargs="*", type=case_name, metavar="NAME")
    parser.add_argument("--size", type=size_factor, default=1.0, help="of the numbers of events; 1")
    parser.add_argument("--rounds", type=rounds_number, default=3, metavar="N")
    parser.add_argument("--results", type=Path, default=FOLDER, help="where to write")
    return parser


def case_name(text: str) -> str:
    """Return the name of a case as an argument gives it."""
    if text not in CASES:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(CASES)}. Got: {text}")
    return text


def rounds_number(text: str) -> int:
    """Return a number of rounds as an argument gives it."""
    if not text.isdecimal() or not 0 < int(text) < 100:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 99. Got: {text}")
    return int(text)


def size_factor(text: str) -> float:
    """Return a size factor as an argument gives it."""
    value = float(text)
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError("must be above 0 and at most 10")
    return value


if __name__ == "__main__":
    sys.exit(main())
