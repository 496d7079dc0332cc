"""Kill relays, JVMs and workers for an hour, and see that every promise is kept all the same.

Usage: python -m scripts.run_soak [--kills 200] [--minutes 75] [--seed N] [--short] [--docs docs]

Ended in the middle (Ctrl-C, SIGTERM, or worse), the same command goes on where it was, with the
same seed. Exit 0: every kill was made and every promise kept; 1: not so, and report.json in the
folder says what; 2: wrong usage, or the soak itself failed.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.soak.folder import Folder, NotOurs, Terms
from scripts.soak.processes import REPOSITORY, SoakFailed
from scripts.soak.report import commit, page, report_of, this_machine
from scripts.soak.run import Soak

from delta_outbox.cli.logs import quieten_pyspark
from delta_outbox.core.errors import OutboxError

SHORT = 3  # kills: a JVM, a worker, a relay
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a soak, or go on with one.

    Args:
        argv: the arguments; those of this process if left out.
    """
    given = _parser().parse_args(argv)
    kills = SHORT if given.short else given.kills
    if kills < 3:
        print(f"soak: --kills: must be at least 3, one of each kind. Got: {kills}")
        return 2
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    folder = Folder(given.folder)
    quieten_pyspark()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: end in order
    try:
        code = commit()
        terms = folder.begin(Terms(seed=seed, kills=kills, commit=code))
        if terms.commit != code:
            print(f"soak: {folder.root} holds a soak of {terms.commit}, and this is {code}.")
            print("soak: Go on with that commit, or remove the folder.")
            return 2
        _say(f"{terms.kills} kills, seed {terms.seed}, in {folder.root}")
        with Soak(folder, terms, _say) as soak:
            soak.kill_all(minutes=given.minutes)
            evidence = soak.finish()
        report = report_of(evidence, terms, stretches=folder.stretches(), machine=this_machine())
    except (SoakFailed, NotOurs, OutboxError) as error:
        print(f"soak: {error}")
        return 2
    except KeyboardInterrupt:
        print("soak: ended. The same command goes on from here.")
        return INTERRUPTED
    made, ended = len(evidence.kills), len(evidence.kills) >= terms.kills
    file = folder.report if ended else folder.so_far
    file.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(page(report))
    if report["examples"]:
        print(json.dumps(report["examples"], indent=2))
    if not ended:
        _say(f"only {made} of {terms.kills} kills in the time; with more --minutes it goes on")
    elif given.docs:
        given.docs.mkdir(parents=True, exist_ok=True)
        (given.docs / "soak.md").write_text(page(report), encoding="utf-8")
    kept = "NOT KEPT" if any(report["violations"].values()) else "every promise was kept"
    _say(f"{kept}{'' if ended else ' so far'}: {file}")
    return 0 if report["kept"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Kill processes, and see every promise kept.")
    parser.add_argument("--kills", type=int, default=200, help="how many; 200 if left out")
    parser.add_argument("--minutes", type=float, default=75.0, help="at most; 75 if left out")
    parser.add_argument("--seed", type=int, help="decides which kills are made, and when")
    parser.add_argument("--short", action="store_true", help=f"{SHORT} kills")
    parser.add_argument("--docs", type=Path, help="write soak.md there")
    parser.add_argument(
        "--folder",
        type=Path,
        default=REPOSITORY / "build" / "soak",
        help="what the soak needs to go on; build/soak if left out",
    )
    return parser


def _say(text: str) -> None:
    print(f"soak: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
