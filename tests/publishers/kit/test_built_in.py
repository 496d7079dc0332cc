"""The kit on the built-in publishers that need no server, its command, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from line_server import LineServer
from tests.publishers.kit.built_in import JsonlAdapter, MemoryAdapter
from tests.publishers.kit.right import LineAdapter, RightPublisher
from tests.publishers.kit.wrong.answering import ForgetsAResult

from delta_outbox.testing.publishers import (
    NAMES,
    Adapter,
    Content,
    Finding,
    Verdict,
    check,
    complaints,
)
from delta_outbox.testing.publishers.__main__ import main

WITHOUT_SERVER = {
    "without stop, start",
    "without freeze, thaw",
    "without lose_answer",
    "without refused",
    "without failing",
}


@pytest.fixture(scope="module", params=[MemoryAdapter, JsonlAdapter])
def findings(request: pytest.FixtureRequest) -> Iterator[dict[str, Finding]]:
    """Run the kit once for each publisher."""
    adapter: Adapter = request.param()
    yield {finding.name: finding for finding in check(adapter)}
    adapter.close()


@pytest.mark.parametrize("name", NAMES)
def test_built_in_publishers_keep_the_rules(findings: dict[str, Finding], name: str):
    """What can be asked of `jsonl` and `memory` they keep."""
    findings[name].demand()


def test_what_is_not_asked_is_named(findings: dict[str, Finding]):
    """Checks are left out only for want of a server to disturb or of a `probe`, and say so."""
    left_out = {one.message for one in findings.values() if one.verdict is Verdict.NOT_ASKED}
    assert WITHOUT_SERVER <= left_out
    rest = {part for said in left_out - WITHOUT_SERVER for part in said.split("; ")}
    lacking = {"without probe", "without freeze, thaw", "probe", "stop, start"}
    assert rest <= lacking


def test_a_publisher_that_raises_has_not_passed():
    """An adapter or publisher that crashes fails every check of the scenario, and says why."""

    class Crashes(MemoryAdapter):
        settings = {"name": "kit", "unknown": 1}  # noqa: RUF012 - an adapter is no shared state

    findings = check(Crashes(), ["what_is_well_is_delivered", "good_settings_are_accepted"])
    assert [Verdict.CRASHED, Verdict.FAILED] == [finding.verdict for finding in findings]
    assert "the only setting is `name`" in findings[0].message
    assert len(complaints(findings)) == 2
    with pytest.raises(AssertionError, match="P-03 what is well is delivered: crashed"):
        findings[0].demand()


def test_an_adapter_that_sees_nothing_is_told_what_it_lacks():
    """Without `received` nothing can be checked; the report names it."""

    class Sees(MemoryAdapter):
        received = Adapter.received  # type: ignore[assignment]

    [finding] = check(Sees(), ["what_is_well_is_delivered"])
    assert finding.verdict is Verdict.CRASHED
    assert "Sees: an adapter needs `received`" in finding.message


def test_what_a_transport_cannot_carry_must_be_rejected():
    """What the documentation excludes is Rejected: to carry it fails the check as well."""

    class Excludes(MemoryAdapter):
        rejects = frozenset({Content.EMPTY_PAYLOAD})

    [finding] = check(Excludes(), ["an_empty_payload_arrives"])
    assert finding.verdict is Verdict.FAILED
    assert "expected <class 'delta_outbox.lifecycle.results.Rejected'>" in finding.message


def test_names_of_checks_are_checked():
    """A check that does not exist is named, with the rule."""
    with pytest.raises(ValueError, match=r"names of checks. Got: no_such_check\."):
        check(MemoryAdapter(), ["no_such_check"])


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("tests.publishers.kit.built_in:JsonlAdapter", 0, "JsonlPublisher: "),
        (
            f"{__name__}:ForgetfulAdapter",
            1,
            "P-01 one result per event: failed",
        ),
        ("no.such.module:Adapter", 2, "the adapter must be package.module:Adapter."),
        ("json:NoSuchThing", 2, "the adapter must be package.module:Adapter."),
    ],
)
def test_the_command(name: str, code: int, said: str, capsys: pytest.CaptureFixture[str]):
    """The command of the kit ends 0 for a good publisher and shows every check."""
    assert code == main([name])
    assert said in capsys.readouterr().out


class ForgetfulAdapter(LineAdapter):
    """A wrong publisher, and a server that ends with it."""

    def __init__(self) -> None:
        self.own = LineServer().__enter__()
        super().__init__(self.own, ForgetsAResult)

    def close(self) -> None:
        super().close()
        self.own.__exit__()


def test_a_way_around_the_proxy_is_noticed():
    """An adapter whose settings do not lead through its proxy does not pass for want of trouble."""
    names = ["a_lost_answer_is_no_failure", "what_lost_its_answer_is_not_sent_again"]
    with LineServer() as server:
        adapter = LineAdapter(server)
        adapter.settings = {**adapter.settings, "port": server.port}
        findings = check(adapter, names)
        adapter.close()
    assert [Verdict.FAILED] * 2 == [finding.verdict for finding in findings]
    assert "no answer was lost" in findings[0].message


def test_a_call_without_end_is_helped_out():
    """A publisher that waits for ever does not hold up the kit: the destination is thawed."""

    class Waits(RightPublisher):
        def attempt(self, event, seconds):
            return super().attempt(event, 3600)

    with LineServer() as server:
        adapter = LineAdapter(server, Waits)
        [finding] = check(adapter, ["a_call_ends_at_its_deadline"])
        adapter.close()
    assert finding.verdict is Verdict.FAILED
