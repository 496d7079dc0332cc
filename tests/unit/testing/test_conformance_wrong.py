"""Every check of the conformance kit can fail: deliberately wrong stores show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from delta_outbox.testing.conformance.__main__ import document, main
from delta_outbox.testing.conformance.rules import RULES
from delta_outbox.testing.conformance.wrong import WRONG, catchers


@pytest.fixture(scope="module")
def caught() -> Mapping[str, Sequence[str]]:
    """Return each check and the wrong stores on which it fails, by assertion."""
    return catchers()


def test_every_wrong_store_is_caught(caught: Mapping[str, Sequence[str]]):
    """No defect of the kit goes unnoticed."""
    found = {store for stores in caught.values() for store in stores}
    assert set() == {store.__name__ for store in WRONG} - found


def test_every_check_catches_something(caught: Mapping[str, Sequence[str]]):
    """Each check fails, by assertion, on at least one wrong store."""
    assert [] == [check for check, stores in caught.items() if not stores]


def test_every_wrong_store_says_what_is_wrong():
    """A wrong store is named for one defect and says it in one sentence."""
    assert [] == [store.__name__ for store in WRONG if not store.__doc__]


def test_the_command_prints_the_table_and_writes_the_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """`python -m delta_outbox.testing.conformance` ends 0 for a good store and shows every rule."""
    assert 0 == main(["--docs", str(tmp_path)])
    shown = capsys.readouterr().out
    assert all(rule.number in shown for rule in RULES)
    assert document() == (tmp_path / "conformance.md").read_text(encoding="utf-8")
    assert "122 passed" in (tmp_path / "conformance-results.md").read_text(encoding="utf-8")
