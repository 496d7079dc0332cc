"""Two writers at once, in every order of what they read and what they commit."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.gates import (
    Gate,
    StopBeforeCommit,
    StopBeforePut,
    more,
    orders,
    places,
    play,
    stop_before,
)
from tests.integration.outboxes import (
    Store,
    as_if_ended,
    check_derived,
    check_lives,
    delivered,
    events,
    left_to_spark,
    new_transition_log,
    open_store,
)
from tests.integration.store.test_log import claim_of

from delta_outbox.api import Outbox
from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import SequenceTaken
from delta_outbox.core.tables import Tables
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.planning import Planning
from delta_outbox.relay.plan.window import Kind
from delta_outbox.runtime.home import Home
from delta_outbox.store import heartbeat
from delta_outbox.store.apply_commands import Commands
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.transition_log import TransitionLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ, BEGIN, COMMIT = range(3)

Slow = Callable[[Gate], Any]


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_races") as store:
        yield store


def _deliver_all(outbox: Outbox) -> list[dict[str, Any]]:
    """Claim and end what is open, and return it."""
    found: list[dict[str, Any]] = []
    while (claim := outbox.claim(100)) is not None:
        outbox.end(claim, [Delivered()] * len(claim))
        found += claim.deliveries.to_pylist()
    return found


def _both_saw_the_same(order: str) -> bool:
    """Say whether either writer had read before the other one committed."""
    committed = min(places(order, name)[COMMIT] for name in "ab")
    return all(places(order, name)[READ] < committed for name in "ab")


@pytest.fixture(
    params=[
        pytest.param("spark", marks=pytest.mark.rest),
        pytest.param("files", marks=pytest.mark.local),
    ]
)
def slow(
    request: pytest.FixtureRequest, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Slow]:
    """Return what makes a session whose appends wait for their turn, made by Spark or as files."""
    if request.param == "files":
        stop = StopBeforePut(monkeypatch)
        yield lambda gate: stop.session(store.spark, gate)
        return
    with left_to_spark(store.spark, store.tables.transitions, store.tables.progress):
        yield lambda gate: StopBeforeCommit(store.spark.newSession(), gate, tmp_path)


def test_appends_in_every_order(store: Store, slow: Slow) -> None:
    """Two writers on one lane: each number has one winner, also inside Delta's transactions; the
    loser has written nothing, learns it, and comes next.
    """
    apart = new_transition_log(store.spark, store.tables, f"{store.tables.schema}_numbers")
    for lane, order in enumerate(orders(3)):
        lost: list[str] = []
        append = partial(_append, slow, apart, lane, lost)
        play(order, a=partial(append, "a"), b=partial(append, "b"))
        rows = store.rows(
            f"select sequence, event_id, relay_id from {apart.transitions} "
            f"where lane = {lane} order by sequence"
        )
        first = "a" if places(order, "a")[COMMIT] < places(order, "b")[COMMIT] else "b"
        second = "b" if first == "a" else "a"
        assert [(1, first, first), (2, second, second)] == [tuple(r.values()) for r in rows], order
        assert ([second] if _both_saw_the_same(order) else []) == lost, order
    store.spark.sql(f"drop schema {apart.schema} cascade")


def _append(
    slow: Slow,
    tables: Tables,
    lane: int,
    lost: list[str],
    name: str,
    gate: Gate,
) -> None:
    """Read, begin and commit an append; once more if it is lost."""
    log = TransitionLog(slow(gate), tables, relay_id=name, lane=lane)
    stop_before(log, "catch_up", gate)
    stop_before(log, "append", gate)
    log.catch_up()
    try:
        log.append(claim_of(name))
    except SequenceTaken:
        lost.append(name)
        log.catch_up()
        log.append(claim_of(name))


@pytest.mark.rest
def test_plans_in_every_order(store: Store, slow: Slow, request: pytest.FixtureRequest) -> None:
    """Two derived writers: each number has one plan, made of the one before it."""
    for order in orders(3):
        asked: list[str] = []
        writer = f"{request.node.callspec.id}-{order}"
        plan = partial(_plan, store, slow, writer, asked)
        play(order, a=partial(plan, "a"), b=partial(plan, "b"))
        rows = store.rows(
            f"select number, plan from {store.tables.progress} where writer = '{writer}' "
            "order by number"
        )
        assert [1, 2] == [row["number"] for row in rows], order
        written = [json.loads(row["plan"]) for row in rows]
        assert [0, 1] == [plan["after"] for plan in written], order
        assert ["a", "b"] == sorted(plan["by"] for plan in written), order
        assert (3 if _both_saw_the_same(order) else 2) == len(asked), order


def _plan(store: Store, slow: Slow, writer: str, asked: list[str], name: str, gate: Gate) -> None:
    """Read, begin and commit a plan, until it is written."""
    plans = NumberedWrites(slow(gate), store.tables, writer=writer, clock=SystemClock())
    stop_before(plans, "last", gate)
    stop_before(plans, "append_after", gate)

    def decide(last: NumberedWrite | None) -> dict[str, Any]:
        asked.append(name)
        return {"by": name, "after": last.number if last else 0}

    written = plans.append(decide, planned_by=name)
    assert written is not None
    assert name == written.plan["by"]


@pytest.mark.rest
def test_claims_in_every_order(store: Store, tmp_path: Path) -> None:
    """Two relays that claim what they see never hold an event both, and each takes the next."""
    count = 4 * len(orders(2))
    store.outbox(tmp_path).append(events("claim", count)).raise_if_rejected()
    workers = [store.outbox(tmp_path) for _ in range(2)]
    claims: list[tuple[Outbox, Claim]] = []
    for number, order in enumerate(orders(2)):
        one, other = (partial(_claim, worker, claims) for worker in workers)
        play(order, a=one, b=other)
        taken = [claim.deliveries["event_id"].to_pylist() for _, claim in claims[-2:]]
        first = 4 * number
        expected = [f"claim-{n:03}" for n in range(first, first + 4)]
        assert expected == sorted(taken[0] + taken[1]), order
    for worker, claim in claims:
        worker.end(claim, [Delivered()] * 2)
    rows = store.transitions("claim")
    check_lives(rows)
    assert Counter(CLAIMED=count, PUBLISHED=count) == Counter(r["to_state"] for r in rows)


def _claim(outbox: Outbox, claims: list[tuple[Outbox, Claim]], gate: Gate) -> None:
    """Read the position and what is open, then append a claim."""
    with pytest.MonkeyPatch.context() as patch:
        stop_before(outbox.log, "catch_up", gate, patch)
        stop_before(outbox.log, "append", gate, patch)
        claim = outbox.claim(2)
    assert claim is not None
    claims.append((outbox, claim))


@pytest.mark.rest
def test_an_ending_and_an_expiry_in_every_order(store: Store, tmp_path: Path) -> None:
    """A claim is ended once: by its owner, or because its lease is over, whoever is first."""
    other = store.outbox(tmp_path)
    for order in orders(2, 1):
        prefix = f"end-{order}"
        owner = store.outbox(tmp_path)
        owner.append(events(prefix, 2)).raise_if_rejected()
        claim = owner.claim(2)
        assert claim is not None
        as_if_ended(owner)
        play(order, a=partial(_end, owner, claim), b=partial(_expire, other))
        rows = store.transitions(prefix)
        check_lives(rows)
        first = "delivered" if order.rindex("a") < order.rindex("b") else "lease_expired"
        assert ["claimed"] * 2 + [first] * 2 == [row["reason"] for row in rows], order
        _deliver_all(other)


def _end(owner: Outbox, claim: Claim, gate: Gate) -> None:
    stop_before(owner.log, "still_live", gate)
    stop_before(owner.log, "append", gate)
    owner.end(claim, [Delivered()] * 2)


def _expire(other: Outbox, gate: Gate) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_before(other.log, "append", gate, patch)
        other.release_expired_claims()


@pytest.mark.rest
def test_refreshes_in_every_order(store: Store, tmp_path: Path) -> None:
    """Two refreshers, of which each may know more: both end with what they knew in the projection,
    nothing is there twice, and the projection equals one derived anew.
    """
    for order in orders(2):
        refresh = partial(_refresh, store, tmp_path)
        ids = [f"refresh-{order}-{name}" for name in "ab"]
        play(order, a=partial(refresh, ids[0]), b=partial(refresh, ids[1]))
        found = store.rows(
            f"select event_id from {store.tables.state} "
            f"where startswith(event_id, 'refresh-{order}-') order by event_id"
        )
        assert ids == [row["event_id"] for row in found], order
    check_derived(store)
    _deliver_all(store.outbox(tmp_path))


def _refresh(store: Store, folder: Path, event_id: str, gate: Gate) -> None:
    """Append an event and look at the logs, up to the first gate; plan, then write the rows."""
    store.insert((event_id, "x", "p"))
    outbox = store.outbox(folder)
    stop_before(outbox.projection._refreshing._plans, "append_after", gate)
    stop_before(outbox.projection._refreshing, "_apply", gate)
    outbox.refresh(planned_by=event_id)
    assert {event_id: "PENDING"} == store.states(event_id)


@pytest.mark.rest
def test_commands_in_every_order(store: Store, tmp_path: Path) -> None:
    """Two that apply the same command replay once, in every order of append and write-off."""
    outbox = store.outbox(tmp_path)
    for order, row in zip(orders(2), _published(outbox, "command", len(orders(2))), strict=True):
        _ask_for_replay(store, row)
        apply = partial(_apply, store, tmp_path)
        play(order, a=apply, b=apply)
        _check_replayed_once(store, row["event_id"])


@pytest.mark.rest
def test_a_command_is_applied_once_although_its_writer_dies(store: Store, tmp_path: Path) -> None:
    """Whoever dies between the transitions of a command and its write-off leaves it to the next,
    which writes it off and replays nothing again, also if it was delivered meanwhile.
    """
    outbox = store.outbox(tmp_path)
    (row,) = _published(outbox, "died", 1)
    _ask_for_replay(store, row)
    dying = Commands(store.outbox(tmp_path))
    stop_before(dying._plans, "append_after", _die)
    with pytest.raises(Died):
        dying.apply()
    _deliver_all(outbox)
    assert 0 == Commands(outbox).apply()
    _check_replayed_once(store, row["event_id"], "claimed", "delivered")


def _apply(store: Store, folder: Path, gate: Gate) -> None:
    """Append what a command asks for, then write it off."""
    outbox = store.outbox(folder)
    commands = Commands(outbox)
    stop_before(outbox.log, "append", gate)
    stop_before(commands._plans, "append_after", gate)
    commands.apply()


@pytest.mark.rest
@pytest.mark.parametrize("claimed", [2, *more(4)])
def test_a_plan_knows_what_its_position_has_passed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int
) -> None:
    """What another relay claims while commands are applied that change nothing is not planned
    as well: part of what is due, or all of it.
    """
    one, other = (store.outbox(tmp_path) for _ in range(2))
    prefix = f"passed-{claimed}"
    one.append(events(prefix, 4)).raise_if_rejected()
    _ask_for_replay(store, one.retrieve(1).deliveries.to_pylist()[0])  # void: it is PENDING
    claims: list[Claim] = []

    def apply() -> int:
        claim = other.claim(claimed)
        assert claim is not None
        claims.append(claim)
        return Commands(one).apply()

    monkeypatch.setattr(one, "apply_commands", apply)
    heart = Heartbeat(one.spark, one.tables, relay_id=one.worker_id, clock=one.clock)
    planning = Planning(one, heart, batch_size=4, isolation=Isolation(one))
    planning.poll(alive=set(), takes_over=True)
    (claim,) = claims
    window = planning.select()
    planned = window.take(Kind.FIRST_ATTEMPT, 4)["event_id"].to_pylist() if window else []
    assert [f"{prefix}-{n:03}" for n in range(claimed, 4)] == planned
    other.end(claim, [Delivered()] * claimed)
    _deliver_all(other)


def _check_replayed_once(store: Store, event_id: str, *since: str) -> None:
    reasons = [row["reason"] for row in store.transitions(event_id)]
    assert ["claimed", "delivered", "replayed", *since] == reasons
    asked = store.rows(f"describe history {store.tables.commands} limit 1")[0]["version"]
    plans = NumberedWrites(store.spark, store.tables, writer="commands", clock=SystemClock())
    assert asked == next(plans.last()).plan["commands"]["to"]


def _published(outbox: Outbox, prefix: str, count: int) -> list[dict[str, Any]]:
    """Deliver events, and return their deliveries."""
    outbox.append(events(prefix, count)).raise_if_rejected()
    return [row for row in _deliver_all(outbox) if row["event_id"].startswith(prefix)]


def _ask_for_replay(store: Store, row: dict[str, Any]) -> None:
    store.spark.sql(
        f"insert into {store.tables.commands} "
        "(command_id, kind, event_id, arrival, destination, lifecycle, actor, reason) values "
        f"('c-{row['event_id']}', 'replay', '{row['event_id']}', {row['arrival']}, "
        f"'{row['destination']}', 0, 'me', 'why')"
    )


class Died(Exception):
    """A part ended as a killed process does."""


def _die() -> None:
    raise Died


@pytest.mark.rest
def test_two_relays_that_both_take_the_lane_for_theirs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ownership is advice: two relays that know nothing of each other and plan the same events
    still claim nothing twice, and deliver everything once and in order.
    """
    monkeypatch.setattr(heartbeat, "_beats", lambda *_, **__: {})
    folder = tmp_path / "to"
    store.outbox(folder).append(events("lane", 24, keys=3)).raise_if_rejected()
    both_have_planned = threading.Barrier(2)
    lost: list[str] = []

    def run(outbox: Outbox) -> None:
        append = outbox.log.append
        met = False

        def watched(rows: pa.Table) -> None:
            nonlocal met
            if not met:
                met = True
                both_have_planned.wait(240)
            try:
                append(rows)
            except SequenceTaken:
                lost.append(outbox.worker_id)
                raise

        outbox.log.append = watched  # type: ignore[method-assign]
        Relay(outbox).run(Mode.DRAIN)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(run, store.outbox(folder, batch_size=4)) for _ in range(2)]:
            done.result()
    assert lost
    rows = store.transitions("lane")
    check_lives(rows)
    assert Counter({"CLAIMED": 24, "PUBLISHED": 24}) == Counter(row["to_state"] for row in rows)
    ids = [line["event_id"] for line in delivered(folder) if line["event_id"].startswith("lane")]
    assert Counter({f"lane-{n:03}": 1 for n in range(24)}) == Counter(ids)
    by_key = [[one for one in ids if int(one[-3:]) % 3 == key] for key in range(2)]
    assert [sorted(of_key) for of_key in by_key] == by_key
    check_derived(store)
