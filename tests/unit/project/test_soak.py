"""What a soak does besides killing: its plan, its folder, what a kill is charged with."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts.soak.damage import Damage, damages
from scripts.soak.evidence import Appended, Copy, Evidence, Kill, Step
from scripts.soak.folder import Folder, NotOurs, Terms
from scripts.soak.plan import strikes
from scripts.soak.processes import Relay
from scripts.soak.report import page, percentile, report_of

TERMS = Terms(seed=1, kills=3, commit="abc")


def kill(number: int, kind: str, at: float, *, until: float = 100.0, alone: bool = False) -> Kill:
    """Return a kill, of the relay that made claim a if it is one of a relay."""
    return Kill(
        number=number, kind=kind, at=at, frozen=False, claim_id="a", alone=alone, until=until
    )


def life(*claims: tuple[str, str, float, float, str]) -> list[Step]:
    """Return the steps of one event, of (claim, relay, began, ended, reason)."""
    steps = []
    for number, (claim_id, relay_id, began, ended, reason) in enumerate(claims, start=1):
        after = "PUBLISHED" if reason == "delivered" else "PENDING"
        for place, (old, new, why, at) in enumerate(
            [("PENDING", "CLAIMED", "claimed", began), ("CLAIMED", after, reason, ended)]
        ):
            steps.append(
                Step(
                    event_id="event-1",
                    sequence=2 * number + place - 1,
                    before=old,
                    after=new,
                    reason=why,
                    claim_id=claim_id,
                    relay_id=relay_id,
                    attempt=number,
                    at=at,
                )
            )
    return steps


def evidence(steps: list[Step], sent: list[float], *kills: Kill) -> Evidence:
    """Return what there is of one event that was sent at some instants."""
    return Evidence(
        acknowledged=["event-1"],
        appended=[Appended(event_id="event-1", key="k", position=(1, 1))],
        steps=steps,
        copies=[
            Copy(event_id="event-1", key="k", payload="1", partition=0, offset=offset, at=at)
            for offset, at in enumerate(sent)
        ],
        kills=kills,
    )


def report(found: Evidence) -> dict[str, Any]:
    """Return the report of a soak that ran for a minute."""
    return report_of(found, TERMS, stretches=[(0.0, 60.0)], machine="a machine")


LEFT = life(("a", "r1", 1.0, 9.0, "lease_expired"), ("b", "r2", 10.0, 12.0, "delivered"))


def test_the_plan_follows_from_the_seed() -> None:
    """200 kills are 30 of a JVM, 30 of a worker and 140 of a relay, the same for the same seed."""
    plan = strikes(7, 200)
    assert {"jvm": 30, "worker": 30, "relay": 140} == Counter(strike.kind for strike in plan)
    assert list(range(1, 201)) == [strike.number for strike in plan]
    assert plan == strikes(7, 200)
    assert plan != strikes(8, 200)
    assert all(strike.frozen for strike in plan if strike.kind == "worker")
    assert {"jvm": 1, "worker": 1, "relay": 5} == Counter(s.kind for s in strikes(7, 7))
    alone = [strike for strike in plan if strike.alone]
    assert plan[:50] == alone  # before there is anything that another kill has left
    assert {"relay"} == {strike.kind for strike in alone}


def test_a_kill_is_charged_with_what_it_left() -> None:
    """An event that was sent before its relay died, and again by the next, is a duplicate of that
    kill, which is recovered from when the second copy is there.
    """
    seen = damages(evidence(LEFT, [1.5, 11.0], kill(1, "relay", 2.0), kill(2, "relay", 11.5)))
    first, second = seen
    assert (1, 1, 9.0, 9.0) == (
        first.in_flight,
        first.duplicates,
        first.recovery,
        first.over,
    )
    assert Damage(kill=second.kill) == second
    assert None is first.others  # there is no other event


def test_it_is_seen_how_soon_others_went_on() -> None:
    """The next message counts that is not of an event which the kill has left in flight."""
    found = evidence(LEFT, [1.5, 11.0], kill(1, "relay", 2.0), kill(2, "jvm", 4.0, until=5.0))
    others = [
        replace(found.copies[0], event_id=name, at=at) for name, at in (("x", 1.0), ("y", 7.0))
    ]
    first, second = damages(replace(found, copies=[*found.copies, *others]))
    assert 5.0 == first.others
    assert None is second.others  # that was after the soak had been stopped


def test_a_relay_is_charged_with_its_own_claims_only() -> None:
    """What another relay's claim left is not the damage of this kill; a JVM takes all with it."""
    others = life(("z", "r9", 1.0, 9.0, "lease_expired"), ("b", "r2", 10.0, 12.0, "delivered"))
    assert 0 == damages(evidence(others, [11.0], kill(1, "relay", 2.0)))[0].in_flight
    assert 1 == damages(evidence(others, [11.0], kill(1, "jvm", 2.0)))[0].in_flight
    assert 0 == damages(evidence(others, [11.0], kill(1, "worker", 2.0)))[0].in_flight


def test_a_stop_in_between_is_no_recovery() -> None:
    """What was sent again only after the soak had been stopped and resumed is not measured."""
    (seen,) = damages(evidence(LEFT, [11.0], kill(1, "relay", 2.0, until=5.0)))
    assert (1, 0, None, None) == (seen.in_flight, seen.duplicates, seen.recovery, seen.over)


def test_a_folder_goes_on_where_it_was(tmp_path: Path) -> None:
    """Seed, numbers and kills of a soak that was ended hold for the next one, until its report."""
    folder = Folder(tmp_path / "soak")
    assert TERMS == folder.begin(TERMS)
    folder.note_time(begins=True)
    folder.note_append(0, 5, done=False)
    folder.note_append(0, 5, done=True)
    folder.note_append(5, 5, done=False)
    made = kill(1, "relay", folder.stretches()[0][0])
    folder.note_kill(made)
    folder.note_time()

    again = Folder(tmp_path / "soak")
    assert TERMS == again.begin(Terms(seed=2, kills=9, commit="other"))
    again.note_time(begins=True)
    assert 10 == again.next_number()
    assert [0, 1, 2, 3, 4] == list(again.acknowledged())
    (begin, end), _ = again.stretches()
    assert begin <= end
    assert [end] == [kill.until for kill in again.kills()]

    again.report.write_text("{}")
    assert 9 == Folder(tmp_path / "soak").begin(Terms(seed=2, kills=9, commit="other")).kills
    assert [] == again.kills()


def test_a_relay_stands_by_until_it_delivers(tmp_path: Path) -> None:
    """A kill waits for a relay that says that it stands by, and has not delivered since."""
    said = tmp_path / "said"
    said.touch()
    with subprocess.Popen(["true"]) as process:
        relay = Relay(process=process, said=said)
    assert (0, False) == (relay.listen(), relay.stands_by)
    for line, batches, stands_by in (
        ("12:00 info standing_by owner=worker-1", 0, True),
        ("12:01 info batch claim_id=a size=1 claimed=1 published=0 retried=1", 0, True),
        ("12:02 info batch claim_id=b size=1 claimed=2 published=1 retried=1", 1, False),
        ("12:03 info policy_in_force version=1", 1, False),
    ):
        with said.open("a") as file:
            file.write(f"{line}\n")
        assert (batches, stands_by) == (relay.listen(), relay.stands_by)
    assert "b" == relay.claim_id


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A folder that holds anything but a soak is refused, and nothing in it is touched."""
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(NotOurs, match="must be new, empty or the folder of a soak"):
        Folder(tmp_path).begin(TERMS)
    assert "dear" == (tmp_path / "letter").read_text()


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2.0), (0.95, 4.0), (0.51, 3.0), (0.01, 1.0)])
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    """It is the smallest value that the share does not exceed."""
    assert expected == percentile([4.0, 1.0, 3.0, 2.0], share)


def test_a_report_is_a_page() -> None:
    """The document is JSON, the page names every number, and a broken promise is not kept."""
    kills = [kill(1, "relay", 2.0, alone=True), kill(2, "jvm", 20.0), kill(3, "worker", 21.0)]
    good = report(evidence(LEFT, [1.5, 11.0], *kills))
    assert good == json.loads(json.dumps(good))
    assert good["kept"]
    assert (1, 2, 1.0) == (good["events"], good["messages"], good["minutes"])
    assert "| **lost** | 0 |" in page(good)
    assert {"alone": 1, "jvm": 1, "worker": 1} == good["kills_wanted"]
    alone = "| relay, at work: no other kill before all is over | 1 | 1 | 1, 1, 1 | 9.0"
    assert alone in page(good)
    assert "| 1 | 0 | 0, 0, 0 | none | none | none |" in page(good)

    bad = report(evidence(LEFT, [], *kills))
    assert not bad["kept"]
    assert "| **lost** | 1 |" in page(bad)
    assert ["event-1: appended, no message"] == bad["examples"]["lost"]
    assert not report(evidence(LEFT, [11.0], *kills[:2]))["kept"]
