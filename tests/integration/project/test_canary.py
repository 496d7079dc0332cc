"""Canaries in payloads, headers, metadata and settings, and a destination that repeats them all:
none shows where it should not.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.outboxes import Store, open_store

from delta_outbox.cli.main import main
from delta_outbox.core.tables import LOGS
from delta_outbox.runtime.dbt import run_dbt
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

SCHEMA = "t_canary"
PAYLOAD = "canary-payload-2f1c0a"
HEADER = "canary-header-77b0e1"
METADATA = "canary-metadata-c4d9"
PASSWORD = "canary-password's \\ tail-5be2"
ACCOUNT = "canary-account-from-environment-9a3d"
IN_URL = "canary-in-a-url-e810"
# Parts that stay whole however a text is quoted.
CANARIES = (PAYLOAD, HEADER, METADATA, "canary-password", "tail-5be2", ACCOUNT, IN_URL)

KINDS = ("raised", "failed", "rejected", "unknown", "delivered")
SETTINGS = f"""
[relay]
poll_seconds = 0.05
parallelism = 2
[publishers.default]
type = "tests.integration.project.canary:Chatterbox"
password = {json.dumps(PASSWORD)}
account = "${{CANARY_ACCOUNT}}"
url = "amqp://guest:{IN_URL}@127.0.0.1/"
"""
# What a publisher may raise when, and the code that this ends with.
RAISES = {
    "validate": "BAD_SETTINGS",
    "sentence": "BAD_SETTINGS",
    "probe": "PUBLISHER_UNAVAILABLE",
    "probe from": "PUBLISHER_UNAVAILABLE",
    "open": "PUBLISHER_UNAVAILABLE",
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """An outbox after a troubled life, and all that was said.

    Args:
        store: its tables.
        said: command line to what it printed, on either stream.
        codes: command line to exit code.
    """

    store: Store
    said: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def run(self, *words: str) -> str:
        """Run a command line in this process and return what it printed."""
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            code = main(words)
        line = " ".join(words)
        self.said[line], self.codes[line] = stream.getvalue(), code
        return stream.getvalue()


def event(kind: str, **given: object) -> dict[str, object]:
    """Return an event as a producer writes it, with a canary wherever one fits."""
    return {
        "event_id": f"canary-{kind}",
        "event_type": f"canary.{kind}",
        "payload": {"card": PAYLOAD, "kind": kind},
        "headers": {"authorization": HEADER},
        "metadata": {"note": METADATA},
        **given,
    }


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    """Return an outbox in which everything has gone wrong, and what each command said of it."""
    folder = tmp_path_factory.mktemp("canary")
    with (
        open_store(spark, home, SCHEMA) as store,
        store.commands(),
        pytest.MonkeyPatch.context() as patch,
    ):
        store.add_policy(
            "canary.*",
            max_attempts="2",
            lease_seconds="30",
            backoff_initial_seconds="0.01",
            backoff_jitter="0",
        )
        patch.setenv("CANARY_ACCOUNT", ACCOUNT)
        told = Told(store=store)
        _live(told, folder)
        yield told


def _live(told: Told, folder: Path) -> None:
    config = folder / "outbox.toml"
    config.write_text(SETTINGS)
    with_config = ("--config", str(config))

    bad = folder / "bad.jsonl"
    lines = [
        json.dumps(event("a", headers={"x": f"{HEADER}\r\ny: z"})),
        json.dumps(event("b", headers={"x": [HEADER]}, metadata=METADATA)),
        json.dumps({"event_id": "c", "event_type": "c", "payload_base64": PAYLOAD}),
        f'{{"event_id": "d", "payload": "{PAYLOAD}", "headers": {{"x": "{HEADER}"}}',
        json.dumps(event("failed", payload=PAYLOAD * 50_000)),
    ]
    bad.write_text("\n".join(lines))
    told.run("append", str(bad), *with_config)
    told.run("--json", "append", str(bad), *with_config)
    good = folder / "good.jsonl"
    good.write_text("".join(f"{json.dumps(event(kind))}\n" for kind in KINDS[1:]))

    # Each with one event waiting: nothing of it may be sent or recorded.
    told.run("append", str(good), *with_config)
    for raises in RAISES:
        trouble = folder / f"{raises.replace(' ', '-')}.toml"
        trouble.write_text(f'{SETTINGS}raises = "{raises}"\n')
        for flag in ("--debug", "--json"):
            told.run("relay", "--once", "--config", str(trouble), flag)

    # What `append` refuses, and another content for an id that is there.
    told.store.spark.sql(
        f"insert into {told.store.tables.events} (event_id, event_type, payload, headers) values "
        f"('canary-broken', 'canary.delivered', cast('{PAYLOAD}' as binary), "
        f"map('x', '{HEADER}\\r\\ny: z')), "
        f"('canary-delivered', 'canary.delivered', cast('{PAYLOAD} else' as binary), "
        f"map('x', '{HEADER}'))"
    )
    told.run("relay", "--drain", "--debug", *with_config)
    # By itself: what a call raises is said of all its events.
    good.write_text(f"{json.dumps(event('raised'))}\n")
    told.run("append", str(good), *with_config, "-v")
    told.run("relay", "--drain", "-vv", *with_config)

    ways: list[tuple[str, ...]] = [(), ("--json",), ("--debug",)]
    for flags in ways:
        told.run("status", *with_config, *flags)
        told.run("list", *with_config, *flags)
        told.run("replay", "--state", "DEAD", "--reason", "r", "--actor", "a", *flags)
        told.run("show", "canary-broken", *flags)
    for kind in KINDS:
        told.run("show", f"canary-{kind}", "--json")
        told.run("show", f"canary-{kind}")
    asked = json.dumps({"state": "DEAD", "reason": "r", "actor": "a"})
    models = ("outbox_state", "invariant_violations", "duplicate_events")
    for args in (
        ["build", "--exclude-resource-type", "unit_test", "--select", *models],
        ["compile"],
        ["run-operation", "replay", "--args", asked],
    ):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            run_dbt(args, home=told.store.home, schema=SCHEMA, quiet=False)
        told.said[f"dbt {args[0]}"] = stream.getvalue()


def shown_in(text: str) -> list[str]:
    """Return the canaries that a text holds."""
    return [canary for canary in CANARIES if canary in text]


def test_the_outbox_has_had_every_trouble(told: Told) -> None:
    """The commands did what they were to be watched at: they failed, retried, died, delivered."""
    transitions = told.store.transitions("canary-")
    ends = {row["event_id"]: row["reason"] for row in transitions}
    assert {
        "canary-failed": "exhausted",
        "canary-rejected": "rejected",
        "canary-unknown": "exhausted",
        "canary-raised": "exhausted",
        "canary-delivered": "delivered",
        "canary-broken": "rejected",
    } == ends
    said = {line.split("/")[-1]: text for line, text in told.said.items()}
    for raises, code in RAISES.items():
        assert code in said[f"{raises.replace(' ', '-')}.toml --json"]
        assert "Traceback" in said[f"{raises.replace(' ', '-')}.toml --debug"]
    assert "canary-rejected" in told.said["dbt run-operation"]


def test_no_command_shows_a_canary(told: Told) -> None:
    """No output, log or trace of any command holds a payload, a header, a setting or what a
    destination repeated of them; `show` shows metadata, which are notes for whoever looks.
    """
    for line, text in told.said.items():
        found = shown_in(text)
        assert [METADATA] * line.startswith("show") == found or [] == found, line


def test_columns_of_errors_and_receipts_hold_no_canary(told: Told) -> None:
    """The words of a destination are on record without what it repeated."""
    rows = told.store.transitions("canary-")
    errors = {row["event_id"]: row["error"] for row in rows if row["error"]}
    assert "***" in errors["canary-failed"]
    assert "OSError" in errors["canary-raised"]
    assert "400: ***" in errors["canary-rejected"]
    assert "the header 'x' holds CR, LF or NUL, or is not UTF-8" == errors["canary-broken"]
    (receipt,) = [row["receipt"] for row in rows if row["receipt"]]
    assert "***" == json.loads(receipt)["by"]
    for name in (*LOGS[1:], "outbox_state", "invariant_violations", "duplicate_events"):
        found: Any = told.store.rows(f"select * from {told.store.tables[name]}")
        assert [] == shown_in(str(found)), name


def test_files_hold_no_canary(told: Told) -> None:
    """Logs, dbt's target folder, compiled SQL, the catalog, Spark's own files and the commits of
    the tables hold no canary: nothing does but the events' own data.
    """
    home = told.store.home
    data = home.warehouse / f"{SCHEMA}.db" / "outbox_events"
    files = [
        path
        for path in home.root.rglob("*")
        if path.is_file() and (data not in path.parents or path.suffix == ".json")
    ]
    names = {path.name for path in files}
    assert {"spark.log", "jvm.log", "dbt.log", "manifest.json", "run_results.json"} <= names
    assert "00000000000000000001.json" in names
    leaks = {}
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # Spark tidies up
            leaks[str(path.relative_to(home.root))] = shown_in(path.read_text(errors="replace"))
    assert {} == {name: found for name, found in leaks.items() if found}


def test_payloads_are_shown_to_who_asks(told: Told) -> None:
    """`show --payload` shows the payload and the headers, and nothing else does."""
    flags: tuple[str, ...]
    for flags in ((), ("--json",)):
        text = Told(store=told.store).run("show", "canary-failed", "--payload", *flags)
        assert [PAYLOAD, HEADER, METADATA] == shown_in(text)


def test_spark_keeps_no_record_of_its_own(told: Told) -> None:
    """Neither a UI nor files of events tell what Spark has run."""
    context = told.store.spark.sparkContext
    assert context.uiWebUrl is None
    settings = dict(context.getConf().getAll())
    assert ("false", "false") == (
        settings["spark.ui.enabled"],
        settings.get("spark.eventLog.enabled", "false"),
    )
