"""The deliberate faults keep up with the code; whether each is noticed is tried elsewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
PATCHES = sorted((REPOSITORY / "tests" / "mutants").glob("*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=[patch.stem for patch in PATCHES])
def test_every_patch_applies(patch: Path) -> None:
    """Each fault still fits the code, also those that only a test with Spark can notice."""
    done = subprocess.run(
        ["git", "apply", "--check", str(patch)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
