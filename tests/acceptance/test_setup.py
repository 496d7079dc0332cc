"""The first command of the README, from nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.acceptance.conftest import cloned

pytestmark = pytest.mark.rest

PATIENCE = 1500.0  # seconds for all packages, on a busy machine


def test_set_up_makes_the_commands(
    repository: Path, strangers_environment: dict[str, str], tmp_path: Path
) -> None:
    """In a fresh clone `make setup` makes an environment of its own with the commands outbox and
    dbt; a second one finds nothing to do.
    """
    clone = cloned(repository, tmp_path)
    for _ in range(2):
        done = subprocess.run(
            ["make", "setup"],
            cwd=clone,
            env=strangers_environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
    assert "" == done.stdout
    for command in ("outbox", "dbt"):
        subprocess.run(
            [clone / ".venv" / "bin" / command, "--help"],
            cwd=clone,
            env=strangers_environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
