"""Deliberate faults keep up with the code and their table; whether they are noticed is tried
elsewhere.
"""

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


def test_the_table_names_every_fault() -> None:
    """docs/mutants.md has one line per patch, with its fault and a test of those it names."""
    lines = (REPOSITORY / "docs" / "mutants.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| [")]
    links = [f"[{patch.stem}](../tests/mutants/{patch.name})" for patch in PATCHES]
    assert links == [link for link, *_ in rows]
    for patch, (_, told, noticed_by, kind) in zip(PATCHES, rows, strict=True):
        fault, check, *_ = patch.read_text().splitlines()
        tests = check.removeprefix("check: ").split()
        assert fault == f"fault: {told}"
        assert noticed_by.strip("`").startswith(tuple(test.partition("[")[0] for test in tests))
        pure = tests[0].startswith(("tests/unit/", "tests/railway/"))
        assert ("unit" if pure else "Spark") == kind
