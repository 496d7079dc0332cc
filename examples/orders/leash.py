"""Runs a script, or a module with -m, until the process that has started it is gone.

    python leash.py third_party.py shop ...

Whoever starts it keeps the other end of its standard input. When that is closed, by whatever end of
that process, the script is told to end, as by SIGTERM.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path
from threading import Thread


def hold() -> None:
    """Wait in a thread for the end of standard input, and end this process then."""
    inherited = os.dup(0)
    # Nothing else reads from it: neither the script nor what it starts.
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)

    def wait() -> None:
        while os.read(inherited, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, name="leash", daemon=True).start()


def main(words: list[str]) -> None:
    """Run what the command line names.

    Args:
        words: a script, or -m and a module, and its arguments.
    """
    hold()
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
