"""A type checker refuses wrong workflows one by one, and takes right ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "typing"
WRONG = sorted((HERE / "wrong").glob("*.py"))
RIGHT = sorted((HERE / "right").glob("*.py"))
OPTIONS = (
    "--strict",
    "--no-error-summary",
    "--config-file=",
    "--follow-imports=silent",
)
ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


@pytest.fixture(scope="module")
def found(mypy_cache: Path) -> dict[Path, set[tuple[int, str]]]:
    """Return what mypy says of each file: lines and codes."""
    kept = f"--cache-dir={mypy_cache}"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", kept, *OPTIONS, *map(str, [*WRONG, *RIGHT])],
        cwd=HERE / "right",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "" == done.stderr
    errors: dict[Path, set[tuple[int, str]]] = {}
    for text in done.stdout.splitlines():
        if ": note: " in text:
            continue
        match = ERROR.match(text)
        assert match, text
        file = (HERE / "right" / match["file"]).resolve()
        errors.setdefault(file, set()).add((int(match["line"]), match["code"]))
    return errors


@pytest.mark.parametrize("file", WRONG, ids=[file.stem for file in WRONG])
def test_a_wrong_workflow_is_refused(file: Path, found: dict[Path, set[tuple[int, str]]]) -> None:
    """The type checker refuses the marked line for the reason given there, and nothing else."""
    marked = {
        (number, line.rpartition("# refused: ")[2])
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if "# refused: " in line
    }
    assert 1 == len(marked)
    assert marked == found.get(file, set())


@pytest.mark.parametrize("file", RIGHT, ids=[file.stem for file in RIGHT])
def test_a_right_workflow_is_taken(file: Path, found: dict[Path, set[tuple[int, str]]]) -> None:
    """The type checker has nothing to say."""
    assert set() == found.get(file, set())
