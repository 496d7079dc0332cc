"""The command line over real Delta tables and dbt.

The commands run in this process on the shared session; only how it is opened is replaced, since
a process has one session. The last tests run the command as a user does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.outboxes import Store, open_store

from delta_outbox.api import Outbox
from delta_outbox.cli.main import main
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.settings_file import load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_cli"

Run = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return the outbox on which commands of this file work."""
    with open_store(spark, home, SCHEMA) as store:

        def opened(config: Path | None) -> Outbox:
            settings = load_settings(home=home.root, path=config)
            return store.open(settings, location="file:/found/when/opened")

        with store.commands(opened):
            yield store


@pytest.fixture
def run(store: Store, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line with --json and returns code and document."""
    del store

    def outbox(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = main([*words, "--json"])
        captured = capsys.readouterr()
        assert 1 == len(captured.out.splitlines()), captured
        return code, json.loads(captured.out)

    return outbox


def lines(path: Path, *events: dict[str, object]) -> str:
    """Write events as JSON lines."""
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return str(path)


def order(event_id: str, **given: object) -> dict[str, object]:
    """Return an event as a producer writes it."""
    return {
        "event_id": event_id,
        "event_type": "order.created",
        "payload": {"n": 1},
        "created_at": "2025-03-01T12:00:00Z",
        **given,
    }


def pausing(run: Run, destination: str) -> tuple[object, ...]:
    """Return whether a destination is paused, by whom and why, as `status` says it."""
    rows = run("status")[1]["destinations"]
    (found,) = (row for row in rows if row["destination"] == destination)
    return found["paused"], found["paused_by"], found["pause_reason"]


def test_from_file_to_delivery(run: Run, tmp_path: Path, home: Home) -> None:
    """Append, look, relay, look again: each command sees all that came before it. An id stands for
    one content.
    """
    file = lines(tmp_path / "e.jsonl", order("flow-1", ordering_key="k"), order("flow-2"))
    assert (0, {"appended": 2, "already_present": 0, "rejected": []}) == run("append", file)
    assert (0, {"appended": 0, "already_present": 2, "rejected": []}) == run("append", file)
    other = lines(tmp_path / "other.jsonl", order("flow-1", payload="another"))
    code, report = run("append", other)
    assert (1, 0) == (code, report["appended"])
    assert ["same_id_same_content"] == [one["rule"] for one in report["rejected"]]

    code, status = run("status")
    assert 0 == code
    assert {"PENDING": 2, "CLAIMED": 0, "PUBLISHED": 0, "DEAD": 0} == status["counts"]
    assert status["oldest_pending_seconds"] > 0
    assert str(home.root) == status["home"]
    assert {"location": "file:/found/when/opened", "single_driver": False} == status["storage"]
    assert "clock_offset_seconds" not in status

    code, summary = run("relay", "--once", "--limit", "1")
    assert (1, 1, 1, 1) == (code, summary["claimed"], summary["published"], summary["waiting"])
    code, summary = run("relay", "--drain")
    assert (0, 1, 0) == (code, summary["published"], summary["waiting"])

    code, listed = run("list", "--state", "PUBLISHED")
    assert (0, False) == (code, listed["more"])
    assert {"flow-1", "flow-2"} == {row["event_id"] for row in listed["events"]}

    code, shown = run("show", "flow-1")
    assert ["CLAIMED", "PUBLISHED"] == [one["to_state"] for one in shown["transitions"]]
    assert "payload" not in shown["event"]
    assert '{"n":1}' == run("show", "flow-1", "--payload")[1]["event"]["payload"]


def test_rows_of_plain_sql_are_seen(run: Run, spark: SparkSession) -> None:
    """What any Spark writer has committed is seen by the next command, unasked."""
    spark.sql(
        f"insert into {SCHEMA}.outbox_events (event_id, event_type, payload, available_at) "
        "values ('sql-1', 'x', cast('p' as binary), current_timestamp() + interval 1 day)"
    )
    code, shown = run("show", "sql-1")
    assert (0, "PENDING") == (code, shown["event"]["state"])
    code, document = run("refresh")
    assert 0 == code
    assert document["freshness"]["refreshed_at"].endswith("Z")
    assert 0 == run("refresh", "--rebuild")[0]


def test_one_bad_row_keeps_all_out(run: Run, tmp_path: Path) -> None:
    """Every bad line is reported, those that cannot be read and those that break a rule."""
    file = tmp_path / "bad.jsonl"
    lines(file, order("bad-1"), order("bad-2", event_type="no spaces allowed"))
    with file.open("a") as stream:
        stream.write("{not json\n")
    code, report = run("append", str(file))
    assert (1, 0) == (code, report["appended"])
    assert [2, 3] == [one["line"] for one in report["rejected"]]
    assert {"line", "field", "rule", "message"} == set(report["rejected"][0])
    code, document = run("show", "bad-1")
    assert (2, "UNKNOWN_EVENT") == (code, document["error"]["code"])


def test_dead_events_end_a_relay_with_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A destination that refuses an event leaves it DEAD, and the relay says so by its code."""
    settings = tmp_path / "outbox.toml"
    settings.write_text('[publishers.default]\ntype = "refusing:Refusing"\n')
    module = tmp_path / "refusing.py"
    module.write_text(
        "from delta_outbox.lifecycle.results import Rejected\n"
        "class Refusing:\n"
        "    def open(self, settings): pass\n"
        "    def publish(self, events): return [Rejected(error='never') for _ in events]\n"
        "    def close(self): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run("append", lines(tmp_path / "e.jsonl", order("dead-1")))
    code, summary = run("relay", "--once", "--config", str(settings))
    assert (1, 1) == (code, summary.get("dead")), summary
    code, listed = run("list", "--state", "DEAD")
    assert [("dead-1", "never")] == [(r["event_id"], r["last_error"]) for r in listed["events"]]


def test_a_destination_is_paused_and_resumed(run: Run, tmp_path: Path) -> None:
    """A pause holds from the command on and says who asked for it and why, to the letter."""
    here, reason = "default", "x' or '1'='1\"; -- \\' {{ 7*7 }} ü"
    run("append", lines(tmp_path / "e.jsonl", order("pause-1")))
    code, document = run("pause", here, "--reason", reason, "--actor", "O'Brien")
    command_id = document["command_id"]
    said = {"kind": "pause", "destination": here, "command_id": command_id, "status": "done"}
    assert (0, said) == (code, document)
    assert (True, "O'Brien", reason) == pausing(run, here)
    assert 0 == run("relay", "--once")[1]["published"]

    code, document = run("resume", here, "--actor", "ann")
    assert (0, "done") == (code, document["status"])
    assert run("relay", "--once")[1]["published"]
    assert "PUBLISHED" == run("show", "pause-1")[1]["event"]["state"]


@pytest.mark.rest
def test_a_pause_is_on_record(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A pause and its end are commands that `show` tells to the letter; a person reads who asked;
    one that is not well asked for is refused, and the destination stays as it was.
    """

    def asked(command_id: str) -> tuple[object, ...]:
        code, document = run("show", command_id)
        command = document["command"]
        [row] = command["deliveries"]
        return code, command["kind"], command["actor"], command["reason"], row["destination"]

    here, reason = "default", "x' or '1'='1\"; -- \\' {{ 7*7 }} ü"
    refused = (
        ("UNKNOWN_DESTINATION", "elsewhere' or '1'='1", "why", "ann"),
        ("UNKNOWN_DESTINATION", "", "why", "ann"),
        *(("WRONG_USAGE", here, text, "ann") for text in ("", " ", "two\nlines", "x" * 501)),
        ("WRONG_USAGE", here, "why", "\x1b[2J"),
    )
    command_id = run("pause", here, "--reason", reason, "--actor", "O'Brien")[1]["command_id"]
    assert (0, "pause", "O'Brien", reason, here) == asked(command_id)
    for words, text in ((["status"], "O'Brien"), (["show", command_id], "pause")):
        assert 0 == main(words)
        assert text in capsys.readouterr().out
    for kind in ("pause", "resume"):
        for error, destination, why, who in refused:
            code, document = run(kind, destination, "--reason", why, "--actor", who)
            assert (2, error) == (code, document["error"]["code"]), (kind, destination, why, who)
    assert (True, "O'Brien", reason) == pausing(run, here)
    command_id = run("resume", here, "--actor", "ann")[1]["command_id"]
    assert (False, None, None) == pausing(run, here)
    assert (0, "resume", "ann", "not given", here) == asked(command_id)


def test_errors_of_spark_are_a_sentence(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of Spark ends with 2, its first line, and no trace on either stream."""
    state = store.tables.state
    store.spark.sql(f"alter table {state} rename to {state}_elsewhere")
    try:
        capsys.readouterr()
        code = main(["status", "--json"])
        captured = capsys.readouterr()
    finally:
        store.spark.sql(f"alter table {state}_elsewhere rename to {state}")
    assert 2 == code
    assert "UNEXPECTED_ERROR" == json.loads(captured.out)["error"]["code"]
    assert "" == captured.err


def test_an_outbox_is_kept_small(run: Run, spark: SparkSession) -> None:
    """Maintenance runs; a purge is a preview until it is applied, takes whole days, and leaves on
    record what it took.
    """
    spark.sql(
        f"insert into {SCHEMA}.outbox_events (event_id, event_type, payload, created_at, "
        "appended_at) select 'old-1', 'order.created', cast('p' as binary), at, at "
        "from (select timestamp'2024-03-01 12:00:00Z' as at)"
    )
    assert 1 == run("relay", "--drain")[1]["published"]
    assert 0 == run("maintain")[0]
    asked = ("purge", "--before", "2024-03-02", "--actor", "ann", "--reason", "two years old")
    code, preview = run(*asked)
    assert (0, {"PUBLISHED": 1}, {}) == (code, preview["counts"], preview["removed"])
    assert "PUBLISHED" == run("show", "old-1")[1]["event"]["state"]
    code, purged = run(*asked, "--apply")
    assert (0, 1) == (code, purged["removed"]["outbox_events"])
    assert "ann" == run("show", "old-1")[1]["purged"]["purged_by"]


@pytest.mark.rest
def test_text_for_people(run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without --json each command prints what a person reads, and nothing of the content."""
    run("append", lines(tmp_path / "e.jsonl", order("people-1", payload="secret")))
    for words in (["status"], ["list"], ["show", "people-1"], ["refresh"], ["relay", "--once"]):
        main(words)
        captured = capsys.readouterr()
        assert captured.out.strip(), words
        assert "secret" not in captured.out
        assert "Traceback" not in captured.err
