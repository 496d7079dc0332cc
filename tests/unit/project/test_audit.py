"""`make audit`: what it ends with, and that it never calls unseen packages sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).resolve().parents[3] / "scripts" / "audit.py"
# Stands for pip-audit, whose database is on the network: prints a report and ends.
PIP_AUDIT = "import sys\nprint({text!r})\nprint('no route', file=sys.stderr)\nsys.exit({code})\n"
ADVISORY = {"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": ["CVE-1"], "description": "bad"}
SOUND = {"name": "a", "version": "1.0", "vulns": []}
BAD = {"name": "b", "version": "1.0", "vulns": [ADVISORY]}
UNSEEN = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


def audit(folder: Path, *said: dict[str, Any], text: str | None = None) -> tuple[int, int, str]:
    """Return the exit codes without and with --may-be-unreachable, and what is printed."""
    report = json.dumps({"dependencies": said, "fixes": []}) if text is None else text
    (folder / "pip_audit.py").write_text(PIP_AUDIT.format(text=report, code=int(BAD in said)))
    ends = [
        subprocess.run(
            [sys.executable, str(AUDIT), *flags],
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        for flags in ((), ("--may-be-unreachable",))
    ]
    assert ends[0].stdout == ends[1].stdout
    return ends[0].returncode, ends[1].returncode, ends[0].stdout


def test_sound_packages_pass(tmp_path: Path) -> None:
    """Packages that were looked up and of which nothing is known pass."""
    assert (0, 0, "audit: 2 packages looked up: nothing known.\n") == audit(tmp_path, SOUND, SOUND)


def test_a_known_vulnerability_fails(tmp_path: Path) -> None:
    """A known vulnerability fails in any case and says what mends it."""
    alone, tolerant, said = audit(tmp_path, SOUND, BAD, UNSEEN)
    assert (1, 1) == (alone, tolerant)
    assert "b 1.0: PYSEC-1 (fixed in: 1.1)" in said


@pytest.mark.parametrize("text", [None, "", "{}", "[]"])
def test_what_was_not_looked_up_is_not_sound(tmp_path: Path, text: str | None) -> None:
    """Where nothing could be looked up, or not all, that is said and fails unless it is allowed."""
    for said in ((UNSEEN, UNSEEN), (SOUND, UNSEEN)):
        alone, tolerant, printed = audit(tmp_path, *said, text=text)
        assert (3, 0) == (alone, tolerant)
        assert "NOT AUDITED" in printed
        assert "looked up" not in printed


def test_an_accepted_advisory_passes(tmp_path: Path) -> None:
    """An advisory that was accepted, by any of its ids, passes; an acceptance without an advisory
    is named.
    """
    code = (
        f"import sys; sys.path.insert(0, {str(AUDIT.parent)!r}); import audit; "
        f"found = audit.judge([{BAD!r}], {{'CVE-1': 'not used here', 'CVE-2': 'old'}}); "
        "print(found.exit_code, *audit.report(found))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    assert said.startswith("0 audit: accepted, but not found: remove CVE-2 ")
