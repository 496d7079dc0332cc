"""The commands of workflows over real logs, hosts, and a third party with a ledger."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.outboxes import Store, delivered, open_store
from tests.unit.workflow_engine.hosts.ledger import Ledger, ledger

from delta_outbox.cli import todo
from delta_outbox.cli.instances import show_text
from delta_outbox.cli.main import main
from delta_outbox.cli.render import console_for
from delta_outbox.core.clock import SystemClock
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUTHOR = REPOSITORY / "tests" / "integration" / "railway" / "author"
DONE = ("outcome", "status", "repeated")
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

    def outbox(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = main([*words, "--config", str(tmp_path / "outbox.toml"), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return outbox


@pytest.fixture(scope="module")
def carrier() -> Iterator[Ledger]:
    """Return a third party, which refuses what it is told to."""
    with ledger() as found:
        yield found


def text_of(parts: Iterable[Any]) -> str:
    """Return what a person reads."""
    stream = io.StringIO()
    for part in parts:
        console_for(stream).print(part)
    return stream.getvalue()


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
    """An order goes over a third party and a person to its end, by commands alone, which refuse
    what does not fit; at the end it is said how it got there.
    """
    order(run, tmp_path, carrier, "c1")
    code, summary = run("relay", "--drain")
    assert (0, 0, 1) == (code, summary["waiting"], summary["open_items"])
    assert ["book-c1"] == carrier.read()
    complete = ("todo", "complete", "review-c1", *BY)
    for words, error in (
        (complete, "WRONG_USAGE"),
        ((*complete, "--data", "send"), "WRONG_USAGE"),
        ((*complete, "--data-file", "nowhere.json"), "WRONG_USAGE"),
        ((*complete, "--data", '{"parcel": "c1"}'), "BAD_ANSWER"),
    ):
        code, document = run(*words)
        assert (2, error) == (code, document["error"]["code"])
    answer = '{"parcel": "c1", "send": true}'
    code, done = run(*complete, "--data", answer, "--outcome", "send")
    assert (0, "send", "done", False) == (code, *(done[name] for name in DONE))
    code, summary = run("relay", "--drain")
    assert (0, 0) == (code, summary["open_items"])
    assert "parcel.sent" == delivered(tmp_path / "out")[-1]["event_type"]
    code, shown = run("workflow", "show", "c1")
    assert (0, "ended", None, []) == (
        code,
        shown["instance"]["state"],
        shown["next"],
        shown["unknown"],
    )
    assert [("book", "faulted", "not_booked"), ("review", "decided", "send")] == [
        (one["task"], one["cause"], one["outcome"]) for one in shown["tasks"]
    ]
    assert "It has ended with parcel.sent" in text_of(show_text(shown))


@pytest.mark.rest
def test_commands_say_where_an_order_stands(run: Run, tmp_path: Path, carrier: Ledger) -> None:
    """While an order waits for somebody, the commands say for whom and for what; of several answers
    the first counts, and the others learn that at once.
    """
    before = run("status")[1]["workflows"]["open_instances"]
    order(run, tmp_path, carrier, "c4")
    run("relay", "--drain")
    status = run("status")[1]["workflows"]
    assert (1, before + 1, 0) == (
        status["in_force"],
        status["open_instances"],
        status["uncertain_in_a_day"],
    )
    assert status["by_state"]["waiting_for_person"] == status["open_items"] >= 1
    items = run("todo", "list", "--role", "support")[1]["items"]
    assert ("c4", "open") in {(one["instance"], one["state"]) for one in items}
    assert [] == run("todo", "list", "--role", "nobody")[1]["items"]
    shown = run("todo", "show", "review-c4")[1]
    assert ("open", {"parcel": "c4"}, ["keep", "send"]) == (
        shown["state"],
        shown["read_model"],
        shown["outcomes"],
    )
    assert "outbox todo complete review-c4" in text_of(todo.show_text(shown))
    run("todo", "assign", "review-c4", "--to", "ben", *BY, "--apply")
    after = run("workflow", "show", "c4")[1]["next"]
    assert ("answer", "ben", None) == (after["what"], after["assigned_to"], after["asked"])
    answer = json.dumps({"parcel": "c4", "send": True})
    code, document = run("todo", "complete", "book-c4", "--data", answer)
    assert (2, "UNKNOWN_ITEM") == (code, document["error"]["code"])
    code, done = run("todo", "complete", "review-c4", "--data", answer)
    (tmp_path / "answer.json").write_text(answer)
    again = run("todo", "complete", "review-c4", "--data-file", "answer.json")
    assert (0, {**done, "repeated": True}) == again
    other = json.dumps({"parcel": "c4", "send": False})
    code, document = run("todo", "complete", "review-c4", "--data", other)
    assert (1, "ANSWERED_ALREADY") == (code, document["error"]["code"])
    assert "what follows is written" == run("workflow", "show", "c4")[1]["next"]["what"]


@pytest.mark.rest
def test_an_instance_is_cancelled(run: Run, tmp_path: Path, carrier: Ledger) -> None:
    """A cancelled instance ends by its default exit, and nobody can answer for it any more; what
    has ended is left out, and a preview writes nothing.
    """
    order(run, tmp_path, carrier, "c2", "c3")
    run("relay", "--drain")
    code, preview = run("workflow", "cancel", "--workflow", "parcels", *BY)
    assert preview["command_id"] is None
    assert {"c2", "c3"} <= {one["instance"] for one in preview["cancelled"]}
    code, done = run("workflow", "cancel", "c2", *BY, "--apply")
    assert (0, ["c2"]) == (code, [one["instance"] for one in done["cancelled"]])
    answer = json.dumps({"parcel": "c2", "send": True})
    code, document = run("todo", "complete", "review-c2", "--data", answer)
    assert (1, "ANSWERED_TOO_LATE") == (code, document["error"]["code"])
    run("relay", "--drain")
    shown = run("workflow", "show", "c2")[1]
    assert ("parcel.kept", ["send"]) == (
        shown["instance"]["exit"],
        [one["answer"] for one in shown["late_answers"]],
    )
    code, again = run("workflow", "cancel", "c2", *BY, "--apply")
    assert (1, 0, None) == (code, again["instances"], again["command_id"])
    assert ["has ended with parcel.kept"] == [one["refusal"] for one in again["left_out"]]
    left = run("workflow", "instances")[1]["instances"]
    assert ("c3", "waiting_for_person") in {(one["instance"], one["state"]) for one in left}
    assert "c2" not in {one["instance"] for one in left}
    code, document = run("workflow", "show", "c9")
    assert (2, "UNKNOWN_INSTANCE") == (code, document["error"]["code"])


@pytest.mark.rest
def test_a_relay_of_other_code_does_not_start(run: Run, store: Store) -> None:
    """Where the rows in force are not those of the code, a relay says so, and what to do."""
    put_into_force(store, hash_="another")
    code, document = run("relay", "--once")
    assert (2, "WORKFLOWS_DIFFER") == (code, document["error"]["code"])
    assert "parcels" in document["error"]["message"]
