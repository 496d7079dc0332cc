"""The demo without Spark: its data, its settings, and what it says."""

from __future__ import annotations

import io
import tomllib
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from delta_outbox.core.errors import BadSettings
from delta_outbox.demo.__main__ import HOMES, main
from delta_outbox.demo.flights import count_by_type, read_flights
from delta_outbox.demo.kafka_home import _SETTINGS, with_address
from delta_outbox.demo.terminal import Terminal, next_commands
from delta_outbox.demo.verify import Proof
from delta_outbox.runtime.home import HOME_VARIABLE, Home

GOOD = Proof(
    expected=3,
    delivered=4,
    missing=0,
    unexpected=0,
    altered=0,
    duplicates=1,
    out_of_order=0,
    scopes=2,
    others=0,
)


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    """Return all flights."""
    return read_flights()


def test_the_data_are_complete(flights: pa.Table) -> None:
    """The package holds the 336,776 flights of 2013, of which 8,255 never left."""
    assert flights.num_rows == 336_776
    assert flights["dep_time"].null_count == 8_255
    assert flights["dep_delay"].null_count == 8_255


def test_missing_values_are_null(flights: pa.Table) -> None:
    """A flight without a tail number has none, not an empty one: it gets no ordering key."""
    assert flights["tailnum"].null_count == 2_512
    assert not {"", "NA"} & set(flights["tailnum"].unique().to_pylist())


def test_what_an_event_id_is_made_of_is_unique(flights: pa.Table) -> None:
    """Day, flight number, airport and scheduled time name one flight."""
    named = ["year", "month", "day", "carrier", "flight", "origin", "sched_dep_time"]
    assert flights.group_by(named).aggregate([]).num_rows == flights.num_rows


@pytest.mark.parametrize(
    ("after", "until", "days"),
    [
        (None, date(2013, 1, 2), {(1, 1), (1, 2)}),
        (date(2013, 1, 30), date(2013, 2, 1), {(1, 31), (2, 1)}),
        (date(2013, 12, 30), None, {(12, 31)}),
        (date(2013, 12, 31), None, set()),
    ],
)
def test_days_are_cut_where_asked(
    after: date | None, until: date | None, days: set[tuple[int, int]]
) -> None:
    """A slice of the year holds whole days: after the one, up to and with the other."""
    table = read_flights(after=after, until=until)
    found = zip(table["month"].to_pylist(), table["day"].to_pylist(), strict=True)
    assert days == set(found)


def test_kinds_are_counted_without_gaps() -> None:
    """A kind of event that does not occur counts as zero."""
    events = pa.table({"event_type": ["flight.delayed", "flight.departed", "flight.delayed"]})
    assert {"departed": 1, "delayed": 2, "cancelled": 0} == count_by_type(events)


def test_kafka_settings_take_an_address() -> None:
    """What the demo writes for Kafka is a destination with the address of the broker."""
    written = tomllib.loads(with_address(_SETTINGS, "127.0.0.1:4711", where="outbox.toml"))
    expected = {
        "type": "kafka",
        "bootstrap.servers": "127.0.0.1:4711",
        "topics": ["flight.*"],
    }
    assert expected == written["publishers"]["default"]


def test_only_the_address_is_replaced() -> None:
    """A user's own changes of the settings survive the next run."""
    given = with_address(_SETTINGS, "127.0.0.1:1", where="outbox.toml")
    own = given.replace("[publishers", "[relay]\nbatch_size = 7\n\n[publishers")
    again = with_address(own, "127.0.0.1:2", where="outbox.toml")
    assert own.replace("127.0.0.1:1", "127.0.0.1:2") == again


def test_settings_without_an_address_are_left_alone() -> None:
    """A settings file that somebody wrote for something else is refused, not overwritten."""
    with pytest.raises(BadSettings, match=r"bootstrap\.servers"):
        with_address('[publishers.default]\ntype = "jsonl"\n', "127.0.0.1:1", where="outbox.toml")


@pytest.mark.parametrize("wrong", ["missing", "unexpected", "altered", "out_of_order"])
def test_a_proof_fails_for_every_fault(wrong: str) -> None:
    """A lost, foreign, changed or overtaking event each breaks the proof."""
    fields = {name: getattr(GOOD, name) for name in GOOD.__dataclass_fields__}
    assert not Proof(**{**fields, wrong: 1}).holds


def test_duplicates_are_reported_only() -> None:
    """At-least-once may deliver twice, so duplicates are counted and break nothing."""
    assert GOOD.duplicates
    assert GOOD.holds


def test_a_pipe_gets_plain_lines() -> None:
    """Without a terminal there are no colours, no spinner, and one line for a step."""
    output = io.StringIO()
    terminal = Terminal(console=Console(file=output, width=200, markup=False, highlight=False))
    with terminal.step("flights", "loading") as step:
        step.says = "3 flights\x1b[31m"
    terminal.proof(GOOD, against="files")
    text = output.getvalue()
    assert "\x1b" not in text
    assert "loading" not in text
    assert [line for line in text.splitlines() if "3 flights\\x1b[31m" in line]
    assert [line for line in text.splitlines() if line.split()[:2] == ["missing", "0"]]


def test_commands_need_no_variable_in_the_default_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the demo advises finds the demo's outbox from the folder where it ran."""
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    here = tmp_path.resolve()
    default = next_commands(Home(root=here / HOMES["jsonl"]), event_id="e", cwd=here)
    assert not [command for command in default if HOME_VARIABLE in command]
    kafka = next_commands(Home(root=here / HOMES["kafka"]), event_id="e", cwd=here)
    assert all(command.startswith(f"{HOME_VARIABLE}=.outbox-kafka ") for command in kafka)


@pytest.mark.parametrize("days", ["0", "366", "-1", "x", "1.5"])
def test_days_must_be_of_the_year(
    days: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number of days outside the year is refused before anything is created."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["--days", days])
    assert caught.value.code == 2
    assert "from 1 to 365" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_a_home_is_an_empty_folder_or_an_outbox(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo does not settle in a folder that holds something else, and says so."""
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["--home", str(tmp_path)]) == 2
    assert "notes.txt" in capsys.readouterr().err
    assert [tmp_path / "notes.txt"] == list(tmp_path.iterdir())
