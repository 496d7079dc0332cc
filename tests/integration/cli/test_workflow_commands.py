"""The commands of workflows over real logs, hosts, and a third party with a ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.outboxes import Store, delivered, open_store
from tests.unit.workflow_engine.hosts.ledger import Ledger, ledger

from delta_outbox.cli.main import main
from delta_outbox.core.clock import SystemClock
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUTHOR = REPOSITORY / "tests" / "integration" / "railway" / "author"
BY = ("--actor", "ann", "--reason", "a test")

Run = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox in which parcels are workflows."""
    with open_store(spark, home, "t_workflow_commands") as opened, opened.commands():
        put_into_force(opened)
        yield opened


def put_into_force(store: Store, *, hash_: str | None = None) -> None:
    """Put the rows of parcels into force; with another hash they are those of other code."""
    rows = joined(rows_of(one) for one in load(["parcels"], AUTHOR))
    if hash_ is not None:
        rows = {**rows, "railway_workflows": [{**rows["railway_workflows"][0], "hash": hash_}]}
    writes = NumberedWrites(store.spark, store.tables, writer="workflows", clock=SystemClock())
    last = next(writes.last(), None)
    assert writes.append_after(last, {"version": "1", "rows": rows}, planned_by="tests")


@pytest.fixture
def run(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Return a function that runs a command line with --json and returns code and document, from
    the folder of a project with parcels.
    """
    del store
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    (tmp_path / "parcels.py").write_text((AUTHOR / "parcels.py").read_text())
    out = tmp_path / "out"
    (tmp_path / "outbox.toml").write_text(
        '[workflows]\nmodules = ["parcels"]\n[third_parties.carrier]\nworkers = 2\n'
        f'[publishers.default]\ntype = "jsonl"\npath = "{out}"\n'
    )
    monkeypatch.chdir(tmp_path)

    def outbox(*words: str, as_json: bool = True) -> tuple[int, Any]:
        capsys.readouterr()
        options = ("--config", str(tmp_path / "outbox.toml"), *(("--json",) if as_json else ()))
        code = main([*words, *options])
        found = capsys.readouterr().out
        return code, json.loads(found) if as_json else found

    return outbox


@pytest.fixture(scope="module")
def carrier() -> Iterator[Ledger]:
    """Return a third party, which refuses what it is told to."""
    with ledger() as found:
        yield found


def order(run: Run, folder: Path, carrier: Ledger, *names: str) -> None:
    """Append that parcels are ordered that the carrier refuses, so that a person is asked."""
    file = folder / "orders.jsonl"
    lines = [
        {
            "event_id": f"ordered-{name}",
            "event_type": "parcel.ordered",
            "payload": {"parcel": name, "port": carrier.port, "does": "carrier_refuses"},
        }
        for name in names
    ]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    assert 0 == run("append", str(file))[0]


def test_from_an_order_to_its_end(run: Run, tmp_path: Path, carrier: Ledger) -> None:
    """An order goes over a third party and a person to its end, by commands alone: each says where
    it stands, and refuses what does not fit.
    """
    order(run, tmp_path, carrier, "c1")
    code, summary = run("relay", "--drain")
    assert (0, 0, 1) == (code, summary["waiting"], summary["open_items"])
    assert ["book-c1"] == carrier.read()
    status = run("status")[1]["workflows"]
    assert {
        "in_force": 1,
        "open_instances": 1,
        "by_state": {"waiting_for_person": 1},
        "open_items": 1,
        "expire_within_the_hour": 1,
        "uncertain_in_a_day": 0,
    } == status
    (item,) = run("todo", "list", "--role", "support")[1]["items"]
    assert ("review-c1", "c1", "open") == (item["task_id"], item["instance"], item["state"])
    shown = run("todo", "show", "review-c1")[1]
    assert ("open", {"parcel": "c1"}, ["keep", "send"]) == (
        shown["state"],
        shown["read_model"],
        shown["outcomes"],
    )

    complete = ("todo", "complete", "review-c1", *BY)
    answer = json.dumps({"parcel": "c1", "send": True})
    for words, error in (
        (complete, "WRONG_USAGE"),
        ((*complete, "--data", "send"), "WRONG_USAGE"),
        ((*complete, "--data", '{"parcel": "c1"}'), "BAD_ANSWER"),
        (("todo", "complete", "book-c1", *BY, "--data", answer), "UNKNOWN_ITEM"),
    ):
        code, document = run(*words)
        assert (2, error) == (code, document["error"]["code"])
    code, done = run(*complete, "--data", answer, "--outcome", "send")
    assert (0, "send", "done", False) == (
        code,
        done["outcome"],
        done["status"],
        done["repeated"],
    )
    (tmp_path / "answer.json").write_text(answer)
    assert (0, {**done, "repeated": True}) == run(*complete, "--data-file", "answer.json")
    code, document = run(*complete, "--data", json.dumps({"parcel": "c1", "send": False}))
    assert (1, "ANSWERED_ALREADY") == (code, document["error"]["code"])

    assert "what follows is written" == run("workflow", "show", "c1")[1]["next"]["what"]
    code, summary = run("relay", "--drain")
    assert (0, 0) == (code, summary["open_items"])
    assert "parcel.sent" == delivered(tmp_path / "out")[-1]["event_type"]
    code, shown = run("workflow", "show", "c1")
    assert (0, "ended", "parcel.sent", None, []) == (
        code,
        shown["instance"]["state"],
        shown["instance"]["exit"],
        shown["next"],
        shown["unknown"],
    )
    assert [("book", "faulted", "not_booked"), ("review", "decided", "send")] == [
        (one["task"], one["cause"], one["outcome"]) for one in shown["tasks"]
    ]
    assert "It has ended with parcel.sent" in run("workflow", "show", "c1", as_json=False)[1]


def test_an_instance_is_cancelled(run: Run, tmp_path: Path, carrier: Ledger) -> None:
    """A cancelled instance ends by its default exit, and nobody can answer for it any more; what
    has ended is left out, and a preview writes nothing.
    """
    order(run, tmp_path, carrier, "c2", "c3")
    assert 2 == run("relay", "--drain")[1]["open_items"]
    code, preview = run("workflow", "cancel", "--workflow", "parcels", *BY)
    assert (0, 2, None) == (code, preview["instances"], preview["command_id"])
    code, done = run("workflow", "cancel", "c2", *BY, "--apply")
    assert (0, ["c2"]) == (code, [one["instance"] for one in done["cancelled"]])
    answer = json.dumps({"parcel": "c2", "send": True})
    code, document = run("todo", "complete", "review-c2", "--data", answer)
    assert (1, "ANSWERED_TOO_LATE") == (code, document["error"]["code"])
    run("relay", "--drain")
    assert "parcel.kept" == run("workflow", "show", "c2")[1]["instance"]["exit"]
    code, again = run("workflow", "cancel", "c2", *BY, "--apply")
    assert (1, 0, None) == (code, again["instances"], again["command_id"])
    assert ["has ended with parcel.kept"] == [one["refusal"] for one in again["left_out"]]
    (left,) = run("workflow", "instances")[1]["instances"]
    assert ("c3", "waiting_for_person") == (left["instance"], left["state"])
    code, document = run("workflow", "show", "c9")
    assert (2, "UNKNOWN_INSTANCE") == (code, document["error"]["code"])


def test_a_relay_of_other_code_does_not_start(run: Run, store: Store) -> None:
    """Where the rows in force are not those of the code, a relay says so, and what to do."""
    put_into_force(store, hash_="another")
    code, document = run("relay", "--once")
    assert (2, "WORKFLOWS_DIFFER") == (code, document["error"]["code"])
    assert "parcels" in document["error"]["message"]
