"""Policies are data: refused at the seed, taken by a running relay, kept when they break."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.integration.outboxes import Store, delivered, open_store

from delta_outbox.cli.main import main
from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import BadPolicy, LogRewound, UnknownDestination
from delta_outbox.core.settings import PublisherSettings, RelaySettings, SecretMapping, Settings
from delta_outbox.delta import numbered_writes
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Failed
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.plan.planning import BATCHES_PER_PLAN
from delta_outbox.runtime import dbt
from delta_outbox.runtime.dbt import check_result, project_dir, run_dbt
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHIPPED = (project_dir() / "seeds" / "delivery_policies.csv").read_text(encoding="utf-8")
SHIPPED_VERSION = PolicySet.from_csv(SHIPPED).version
PARTS = ("macros", "models", "seeds", "profiles")

ODD = r"""event_type,destination,route,max_attempts,on_dead
"o'brien, ""Pat"" \n","default","it's {event_type}, \'""é""/😀 007",007,hold
[!a-c]?.*,default,,,
"[]-]['\""]x&&y",default,{{}},5,
  spaced.*  , default ,,  ,
*,default,,,
"""

WAIT = 60.0  # seconds, for what a running relay does within its next batches


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the dbt project whose seed may be changed; dbt runs on it."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(project_dir() / "dbt_project.yml", folder)
    for part in PARTS:
        shutil.copytree(project_dir() / part, folder / part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbt, "project_dir", lambda: folder)
        yield folder


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home, project: Path) -> Iterator[Store]:
    """Return an outbox for the tests of this file."""
    del project
    with open_store(spark, home, "t_policies") as store:
        yield store


@pytest.fixture
def seed(store: Store, project: Path) -> Callable[[str], None]:
    """Return a function that builds a text as the seed, as `dbt build` would."""

    def build(text: str) -> None:
        (project / "seeds" / "delivery_policies.csv").write_text(text, encoding="utf-8")
        selected = ["build", "--select", "delivery_policies", "policy_rows"]
        check_result(run_dbt(selected, home=store.home, schema=store.tables.schema))

    return build


def plans(store: Store) -> list[dict[str, Any]]:
    """Return the versions of the policies that were kept, in order."""
    found = store.rows(
        f"select plan from {store.tables.progress} where writer = 'policy' order by number"
    )
    return [json.loads(row["plan"]) for row in found]


def change_rows(store: Store, change: str) -> None:
    """Change the rows of the table with plain SQL, as no seed would."""
    store.spark.sql(f"update {store.tables['policy_rows']} set {change} where event_type = '*'")


@pytest.mark.rest
def test_bad_rows_and_no_earlier_ones(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Without policies nothing is claimed: the command says what is wrong, and ends with 2."""
    change_rows(store, "lease_seconds = '0.5', ordering = 'both'")
    with store.commands(lambda _: store.outbox(tmp_path)):
        capsys.readouterr()
        assert 2 == main(["relay", "--once", "--json"])
        error = json.loads(capsys.readouterr().out)["error"]
        assert 2 == main(["relay", "--once"])
        text = " ".join(capsys.readouterr().err.split())
        assert 0 == main(["status", "--json"])
        policy = json.loads(capsys.readouterr().out)["policy"]
    change_rows(store, "lease_seconds = '30', ordering = 'strict'")
    expected = (
        "delivery_policies: row 1 ('*'), column `ordering`: must be strict or none. Got: 'both'; "
        "row 1 ('*'), column `lease_seconds`: must be a number from 1 to 86400. Got: '0.5'"
    )
    assert ("BAD_POLICY", expected) == (error["code"], error["message"])
    assert "seeds/delivery_policies.csv" in error["remedy"]
    assert f"BAD_POLICY: {expected}" in text
    assert {"version": None, "problem": expected} == policy
    assert [] == plans(store)


def test_text_of_a_seed_arrives_unchanged(
    store: Store, seed: Callable[[str], None], tmp_path: Path
):
    """Apostrophes, commas, quotes, backslashes, unicode and leading zeros mean what they say."""
    seed(ODD)
    expected = PolicySet.from_csv(ODD)
    assert expected == store.outbox(tmp_path).policies()
    cells = store.rows(
        f"select event_type, route, max_attempts from {store.tables['policy_rows']} "
        "where position = 1"
    )
    assert {
        "event_type": 'o\'brien, "Pat" \\n',
        "route": "it's {event_type}, \\'\"é\"/😀 007",
        "max_attempts": "007",
    } == cells[0]
    names = ['o\'brien, "Pat" \\n', "xé.\n\n", "ax.", "]'x&&y", '-"x&&y', "[]", "spaced.x", "\n"]
    store.spark.createDataFrame([(name,) for name in names], "name string").createOrReplaceTempView(
        "t_policies_names"
    )
    won = store.rows(
        "select name, min(position) as position from t_policies_names "
        f"join {store.tables['policy_rows']} on name rlike event_type_regex group by name"
    )
    assert {name: expected.policies.index(expected.match(name)) + 1 for name in names} == {
        row["name"]: row["position"] for row in won
    }


def test_a_bad_seed_is_refused_before_anything_is_touched(
    store: Store, seed: Callable[[str], None], tmp_path: Path
):
    """Every problem is named at once by row, column and rule; the last good rows stay."""
    before = store.rows(f"select * from {store.tables['delivery_policies']}")
    policies = store.outbox(tmp_path).policies()
    bad = "event_type,destination,lease_secs,max_attempts\no'b,a||b,1,\n[x,,,1.5\n"
    with pytest.raises(BadPolicy) as refused:
        seed(bad)
    with pytest.raises(BadPolicy) as expected:
        PolicySet.from_csv(bad)
    assert 5 == len(expected.value.problems)
    assert expected.value.problems == refused.value.problems
    assert before == store.rows(f"select * from {store.tables['delivery_policies']}")
    assert policies == store.outbox(tmp_path).policies()


@pytest.mark.rest
def test_each_version_is_kept_once(store: Store, seed: Callable[[str], None], tmp_path: Path):
    """policy_version leads to its rows, and a version that is in force is not kept again."""
    seed(SHIPPED)
    first = store.outbox(tmp_path).policies()
    change_rows(store, "lease_seconds = '31'")
    second = store.outbox(tmp_path).policies()
    store.outbox(tmp_path).policies()
    assert first.version != second.version
    last = plans(store)[-2:]
    assert [first.version, second.version] == [plan["version"] for plan in last]
    assert [first, second] == [PolicySet.parse(plan["rows"]) for plan in last]


@pytest.mark.rest
def test_broken_rows_keep_the_last_good_ones_also_after_a_restart(
    store: Store, seed: Callable[[str], None], tmp_path: Path
):
    """Rows that somebody broke with plain SQL change nothing but what `status` says."""
    running = store.outbox(tmp_path)
    good = running.policies()
    kept = len(plans(store))
    change_rows(store, "ordering = 'both'")
    assert good == running.policies()
    restarted = store.outbox(tmp_path)
    assert good == restarted.policies()
    store.insert(("kept-1", "order.created", "{}"))
    assert 1 == restarted.retrieve(10).deliveries.num_rows
    assert {
        "version": good.version,
        "problem": "delivery_policies: row 1 ('*'), column `ordering`: must be strict or none. "
        "Got: 'both'",
    } == restarted.policy_status()
    store.spark.sql(f"drop table {store.tables['policy_rows']}")
    assert good == running.policies()
    assert good == store.outbox(tmp_path).policies()
    assert kept == len(plans(store))
    seed(SHIPPED)
    assert {"version": SHIPPED_VERSION, "problem": None} == running.policy_status()
    assert SHIPPED_VERSION == running.policies().version


@pytest.mark.rest
def test_a_running_relay_takes_new_policies_and_refuses_those_it_cannot_serve(
    store: Store, tmp_path: Path
):
    """A change counts from the next batch; an unknown destination leaves the former in force."""
    folder = tmp_path / "delivered"
    outbox = store.outbox(folder)
    first = outbox.policies().version
    stop = threading.Event()
    relay = threading.Thread(target=lambda: Relay(outbox).run(Mode.CONTINUOUS, stop=stop))
    relay.start()
    try:
        store.insert(("live-1", "order.created", "{}"))
        wait_for("live-1", folder)
        change_rows(store, "destination = 'nowhere', max_attempts = '9'")
        store.insert(("live-2", "order.created", "{}"))
        wait_for("live-2", folder)
        change_rows(store, "destination = 'default', max_attempts = '4'")
        store.insert(("live-3", "order.created", "{}"))
        wait_for("live-3", folder)
    finally:
        stop.set()
        relay.join(WAIT)
    second = outbox.policies().version
    assert first != second
    lives = {(row["event_id"], row["policy_version"]) for row in store.transitions("live")}
    assert {("live-1", first), ("live-2", first), ("live-3", second)} == lives
    assert {first, second} <= {plan["version"] for plan in plans(store)}
    change_rows(store, "destination = 'nowhere'")
    problem = "The destination 'nowhere' is not in the settings. Known: default."
    assert {"version": second, "problem": problem} == outbox.policy_status()
    with pytest.raises(UnknownDestination):
        Relay(store.outbox(folder)).run(Mode.ONCE)


@pytest.mark.rest
def test_a_delivery_stays_with_the_destination_of_its_first_claim(store: Store, tmp_path: Path):
    """Policies that name another one by now change nothing for it: a relay that starts then still
    serves the former one, and where the settings have lost it, the event fails and says so, and
    holds up no other destination.
    """
    both = {
        name: PublisherSettings(
            type="jsonl", settings=SecretMapping({"path": str(tmp_path / name)})
        )
        for name in ("default", "former")
    }
    relay_settings = RelaySettings(poll_seconds=0.05, parallelism=2)
    full = Settings(relay=relay_settings, publishers=both)
    poor = Settings(relay=relay_settings, publishers={"default": both["default"]})

    change_rows(store, "destination = 'former', backoff_initial_seconds = '0', max_attempts = '9'")
    store.insert(("stay-1", "order.created", "{}"), ("stay-2", "order.created", "{}"))
    with contextlib.closing(store.open(full)) as first:
        claim = first.claim(10)
        assert claim is not None
        first.end(claim, [Failed(error="not now")] * len(claim))
    change_rows(store, "destination = 'default'")
    store.insert(("stay-3", "order.created", "{}"))
    with contextlib.closing(store.open(poor)) as second:
        assert 1 == Relay(second).run(Mode.ONCE).published
    failed = {row["error"] for row in store.transitions("stay") if row["reason"] == "failed"}
    assert {"not now", "the settings no longer have the destination 'former'"} == failed
    with contextlib.closing(store.open(full)) as third:
        assert 2 == Relay(third).run(Mode.DRAIN).published
    arrived = {
        name: sorted(line["event_id"] for line in delivered(tmp_path / name)) for name in both
    }
    assert {"default": ["stay-3"], "former": ["stay-1", "stay-2"]} == arrived


@pytest.mark.rest
def test_each_former_destination_is_found(store: Store, tmp_path: Path):
    """Of two former destinations the second shows when the first is served: no event fails for it,
    however many of the first stand before it.
    """
    names = ("default", "former", "older")
    settings = Settings(
        relay=RelaySettings(poll_seconds=0.05, parallelism=2, batch_size=1),
        publishers={
            name: PublisherSettings(
                type="jsonl", settings=SecretMapping({"path": str(tmp_path / name)})
            )
            for name in names
        },
    )
    counts = {"former": BATCHES_PER_PLAN + 1, "older": 1}
    with contextlib.closing(store.open(settings)) as first:
        claims = []
        for name, count in counts.items():
            change_rows(
                store, f"destination = '{name}', backoff_initial_seconds = '0', max_attempts = '9'"
            )
            rows = [(f"both-{name}-{n:02}", "order.created", "{}") for n in range(count)]
            store.insert(*rows)
            first.policies()
            claims.append(first.claim(count))
        for claim in claims:
            assert claim is not None
            first.end(claim, [Failed(error="not now")] * len(claim))
    change_rows(store, "destination = 'default'")
    with contextlib.closing(store.open(settings)) as second:
        assert sum(counts.values()) == Relay(second).run(Mode.DRAIN).published
    failed = [row["error"] for row in store.transitions("both") if row["reason"] == "failed"]
    assert ["not now"] * sum(counts.values()) == failed
    assert counts == {name: len(delivered(tmp_path / name)) for name in counts}


def wait_for(event_id: str, folder: Path) -> None:
    """Wait until an event is delivered."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if any(f'"{event_id}"' in file.read_text("utf-8") for file in folder.glob("*.jsonl")):
            return
        time.sleep(0.1)
    raise AssertionError(f"{event_id} was not delivered within {WAIT:g} s")


@pytest.mark.rest
def test_a_rewound_log_of_plans_is_noticed(store: Store):
    """A number that counts as used although its plan is gone is an error, not a silent loss."""
    writer = NumberedWrites(store.spark, store.tables, writer="rewound", clock=SystemClock())
    writer.append(lambda _: {"n": 1}, planned_by="test")
    store.spark.sql(f"delete from {store.tables.progress} where writer = 'rewound'")
    with pytest.raises(LogRewound):
        writer.append(lambda _: {"n": 1}, planned_by="test")


@pytest.mark.rest
@pytest.mark.local
def test_the_last_plans_are_read_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many, who asks for the last plans reads no file of those before."""
    monkeypatch.setattr(numbered_writes, "MANY", 2)
    plans = NumberedWrites(store.spark, store.tables, writer="long", clock=SystemClock())
    for number in range(1, 5):
        plans.append(partial(lambda n, _: {"n": n}, number), planned_by="test")
    (first,) = store.rows(
        f"select input_file_name() as file from {store.tables.progress} "
        "where writer = 'long' and number = 1"
    )
    file = Path(unquote(urlsplit(first["file"]).path))
    away = file.rename(file.with_name("away"))
    try:
        assert [4, 3] == [one.number for one in plans.last(2)]
    finally:
        away.rename(file)
    assert [4, 3, 2, 1] == [one.number for one in plans.last(9)]
    store.spark.sql(f"delete from {store.tables.progress} where writer = 'long' and number = 4")
    assert [3, 2] == [one.number for one in plans.last(2)]


@pytest.mark.rest
@pytest.mark.parametrize("many", [numbered_writes.MANY, 0])
def test_a_plan_is_found_by_its_number(
    store: Store, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """As it was written, be it read here or by Spark, and never that of another writer, nor one
    that the log has lost.
    """
    monkeypatch.setattr(numbered_writes, "MANY", many)
    one, other = (
        NumberedWrites(store.spark, store.tables, writer=f"{name}-{many}", clock=SystemClock())
        for name in ("one", "other")
    )
    written: dict[tuple[str, int], NumberedWrite] = {}
    for plans in (one, other, one):
        plan = {"of": plans.app_id, "n": len(written), "text": "\u00e9 'quoted'"}
        new = plans.append(partial(lambda plan, _: plan, plan), planned_by="test")
        assert new is not None
        written[plans.app_id, new.number] = new
    for plans in (one, other):
        for number in (1, 2, 3):
            assert written.get((plans.app_id, number)) == plans.numbered(number)
    store.spark.sql(
        f"delete from {store.tables.progress} where writer = 'one-{many}' and number = 2"
    )
    assert one.numbered(2) is None
    assert written[one.app_id, 1] == one.numbered(1)
