"""The example of orders keeps its promises, by the tests that its author wrote."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from order_compensation import order_compensation
from order_creation import order_creation

from delta_outbox.railway.drawing import draw
from delta_outbox.railway.graphviz_files import save
from delta_outbox.railway.pages import page

ROOT = Path(__file__).resolve().parents[2]
ORDERS = ROOT / "examples" / "orders"


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


@pytest.mark.parametrize("workflow", [order_creation, order_compensation])
def test_the_pages_of_the_orders_are_what_the_classes_say(workflow) -> None:
    """A page of the example that is stale is noticed."""
    written = ORDERS / "docs" / "workflows" / f"{workflow.name}.md"
    assert page(workflow) == written.read_text(encoding="utf-8")


def test_the_picture_of_the_docs_is_what_the_classes_say(tmp_path: Path) -> None:
    """The words of the picture in docs/railway are those of the example; Graphviz places them."""
    save(draw(order_creation), tmp_path / "drawn.svg")
    drawn, shown = (
        sorted(re.findall(r">([^<>]+)</text>", file.read_text(encoding="utf-8")))
        for file in (tmp_path / "drawn.svg", ROOT / "docs" / "railway" / "order_creation.svg")
    )
    assert drawn == shown
    assert "Customer support review" in shown
