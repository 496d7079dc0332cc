"""How long a command takes on an outbox without events, from its start to its exit."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import median, rounded
from benchmarks.results import BenchmarkFailed

COMMANDS: Final = (("relay", "--once"), ("status",))
_MAIN: Final = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: not used: there are no events.
        rounds: of each command.
    """
    del size
    with tempfile.TemporaryDirectory(prefix="delta-outbox-benchmark-") as folder:
        home = Path(folder) / "home"
        seconds_of(("init",), home)
        found = {
            " ".join(words): [rounded(seconds_of(words, home)) for _ in range(rounds)]
            for words in COMMANDS
        }
    return {
        "what": {"rounds": rounds},
        "all": found,
        "seconds": {name: median(seconds) for name, seconds in found.items()},
    }


def seconds_of(words: tuple[str, ...], home: Path) -> float:
    """Run a command to its end and return the seconds.

    Args:
        words: of the command.
        home: of the outbox.

    Raises:
        BenchmarkFailed: it does not end with exit 0.
    """
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, *words],
        env={**os.environ, "OUTBOX_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchmarkFailed(f"outbox {' '.join(words)}: {done.stderr.strip()[-500:]}")
    return time.perf_counter() - started
