"""Deliberate faults are noticed: the short form of `make mutants`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rest

REPOSITORY = Path(__file__).resolve().parents[2]


def test_unit_tests_notice_what_is_theirs() -> None:
    """With each fault in the code a unit test fails, and says by an assertion what is wrong."""
    done = subprocess.run(
        [sys.executable, "scripts/run_mutants.py", "--no-spark"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_selection_keeps_the_other_lines(tmp_path: Path) -> None:
    """Who tries some mutants renews their lines of the table; the lines of others that exist
    stay.
    """
    tried, other = "lease-by-the-owners-clock", "no-fence"
    line = "| [{0}](../tests/mutants/{0}.patch) | as it was | `a test` | unit |"
    page = tmp_path / "mutants.md"
    page.write_text("\n".join(map(line.format, (other, tried, "gone"))))
    done = subprocess.run(
        [sys.executable, "scripts/run_mutants.py", "--docs", str(tmp_path), tried],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (text for text in page.read_text().splitlines() if text.startswith("| ["))
    assert first.startswith(f"| [{tried}]")
    assert "`tests/unit/store/test_leases.py::test_a_lease_counts_from_the_first_poll`" in first
    assert line.format(other) == second


def test_a_fault_that_nothing_notices_fails_the_run(tmp_path: Path) -> None:
    """A patch without effect is missed, and one that does not fit is told."""
    harmless = (
        "--- a/python/delta_outbox/store/leases.py\n+++ b/python/delta_outbox/store/leases.py\n"
        "@@ -1,3 +1,3 @@\n-{0[0]}\n+{0[0]}  #\n {0[1]}\n {0[2]}\n"
    )
    lines = (REPOSITORY / "python/delta_outbox/store/leases.py").read_text().splitlines()
    head = "fault: none\ncheck: tests/unit/store/test_leases.py\n\n"
    (tmp_path / "harmless.patch").write_text(head + harmless.format(lines))
    (tmp_path / "misfit.patch").write_text(head + harmless.format(["no such line", *lines[1:]]))
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import run_mutants; "
        "run_mutants.MUTANTS = Path(sys.argv[1]); sys.exit(run_mutants.main(['--no-spark']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [
        "MISSED harmless: nothing noticed",
        "MISSED misfit: the patch no longer applies",
        "0 of 2 mutants were noticed",
    ] == done.stdout.splitlines()
    assert done.returncode == 1
