"""A home with an outbox in which nothing has happened, made once and copied: a JVM less for each.

All processes of `run_tests.py` share one; any other makes its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.integration.template import FOLDER_VARIABLE

from delta_outbox.runtime.file_lock import file_locked
from delta_outbox.runtime.home import Home

OUTBOX = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"
"""The command, for `python -c`."""


def new_home(root: Path, *, environment: Mapping[str, str], keep: Path) -> Home:
    """Make a home with an outbox; whoever is first lets `outbox init` make the one to copy.

    Args:
        root: the new home.
        environment: of the command.
        keep: where that one is, unless all processes of the run share it.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or keep)
    made, begun = folder / "home", folder / "home-begun"
    with file_locked(folder / "home-lock"):
        if not made.exists():
            shutil.rmtree(begun, ignore_errors=True)
            done = subprocess.run(
                [sys.executable, "-c", OUTBOX, "init", "--json"],
                env={**environment, "OUTBOX_HOME": str(begun)},
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert 0 == done.returncode, done.stdout + done.stderr
            begun.rename(made)
    shutil.copytree(made, root, symlinks=True)
    return Home(root=root)
