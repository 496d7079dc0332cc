"""The example of orders keeps its promises, by the tests that its author wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ORDERS = Path(__file__).resolve().parents[2] / "examples" / "orders"


def test_the_tests_of_the_orders_pass() -> None:
    """Whoever follows the example's README sees its tests pass."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir=.", "-c", "pytest.ini", "-W", "error"],
        cwd=ORDERS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
