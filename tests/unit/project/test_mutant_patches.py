"""Deliberate faults keep up with the code and their table; whether they are noticed is tried
elsewhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
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


def test_no_fault_uses_a_name_that_is_not_there(tmp_path: Path) -> None:
    """With a fault in it the code still compiles and knows every name that it uses: a test that
    notices the fault would only break otherwise.
    """
    for patch in PATCHES:
        copy = tmp_path / patch.stem
        for line in patch.read_text().splitlines():
            if line.startswith("--- a/"):
                file = line.removeprefix("--- a/")
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / file, copy / file)
        subprocess.run(["git", "apply", str(patch)], cwd=copy, check=True)
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F821", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == found.returncode, found.stdout + found.stderr


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
