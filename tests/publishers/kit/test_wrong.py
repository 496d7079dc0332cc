"""Every check of the publisher kit can fail: deliberately wrong publishers show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from line_server import LineServer
from tests.publishers.kit.right import LineAdapter, RightPublisher
from tests.publishers.kit.wrong import WRONG

from delta_outbox.publishers import Publisher
from delta_outbox.testing.publishers import CHECKS, NAMES, Finding, Verdict, check


@pytest.fixture(scope="module")
def server() -> Iterator[LineServer]:
    """Start the destination of all of them."""
    with LineServer() as one:
        yield one


def _check(
    server: LineServer, publisher: type[Publisher], names: tuple[str, ...]
) -> dict[str, Finding]:
    adapter = LineAdapter(server, publisher)
    try:
        return {finding.name: finding for finding in check(adapter, names)}
    finally:
        adapter.close()


def test_the_right_publisher_passes_every_check(server: LineServer):
    """The publisher from which the wrong ones are made keeps every rule, and all are asked."""
    findings = _check(server, RightPublisher, NAMES)
    assert [] == [str(one) for one in findings.values() if one.verdict is not Verdict.PASSED]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_publisher_is_caught(server: LineServer, wrong: type[RightPublisher]):
    """A wrong publisher fails the checks that are about its defect, by assertion."""
    findings = _check(server, wrong, wrong.caught_by)
    expected = dict.fromkeys(wrong.caught_by, Verdict.FAILED)
    assert expected == {name: one.verdict for name, one in findings.items()}, findings


def test_every_check_catches_a_wrong_publisher():
    """Each check has a wrong publisher that is known to fail it."""
    caught = {name for wrong in WRONG for name in wrong.caught_by}
    assert set(NAMES) == caught


def test_every_wrong_publisher_says_what_is_wrong():
    """A wrong publisher is named for one defect, says it in one sentence, and is tried."""
    assert [] == [wrong.__name__ for wrong in WRONG if not (wrong.__doc__ and wrong.caught_by)]


def test_checks_are_numbered_and_say_one_sentence():
    """Numbers and names are unique and in order, and each check says its rule in one sentence."""
    numbers = [one.number for one in CHECKS]
    assert sorted(set(numbers)) == numbers
    assert [1] * len(CHECKS) == list(Counter(one.name for one in CHECKS).values())
    assert [] == [one.name for one in CHECKS if not one.says.endswith(".") or ". " in one.says]
