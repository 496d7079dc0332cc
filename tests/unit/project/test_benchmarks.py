"""The parts of the benchmarks that are pure: messages, arithmetic, the check, tables, the page."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks import pairs
from benchmarks.broker import check
from benchmarks.cases import large_payloads
from benchmarks.cases.recovery import recovery
from benchmarks.cases.small_drains import ahead_from
from benchmarks.cases.trickle import PER_SECOND, Appended, latencies
from benchmarks.commands import insert, number_of
from benchmarks.costs import Cost, Meter, as_documents, rates
from benchmarks.delivered import Delivered
from benchmarks.failing_kafka import ONE_IN, fails
from benchmarks.figures import best, drift, median, percentile, rate, ratio, scaled, spread
from benchmarks.messages import PAYLOAD_BYTES, Stream, shares
from benchmarks.report import TEXT, UnknownTable, page
from benchmarks.results import BenchmarkFailed, load, save
from benchmarks.room import check_room
from benchmarks.run import CASES, main
from benchmarks.tables import TABLES, drain
from benchmarks.third_party import Call, delays_between, third_party

STREAM = Stream(name="bench.some", count=40, keys=4)


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """A message as a consumer gives it."""

    number: int
    stream: Stream = STREAM
    payload: bytes | None = None
    own_key: str | None = None
    at: int | None = None

    def value(self) -> bytes:
        return self.stream.payload(self.number) if self.payload is None else self.payload

    def key(self) -> bytes:
        return (self.own_key or self.stream.key(self.number)).encode()

    def headers(self) -> list[tuple[str, str | bytes | None]]:
        return self.stream.wire_headers(self.number)

    def partition(self) -> int:
        return self.number % STREAM.keys % 2 if self.at is None else self.at


def arrived(*numbers: int) -> list[Any]:
    """Return messages in this order."""
    return [Arrived(number=number) for number in numbers]


def test_a_message_follows_from_its_number():
    """Payloads have the promised size and no two are the same; an id leads back to its number."""
    payloads = {STREAM.payload(number) for number in range(len(STREAM))}
    assert len(STREAM) == len(payloads)
    assert {PAYLOAD_BYTES} == set(map(len, payloads))
    assert list(range(40)) == [STREAM.number(STREAM.event_id(number)) for number in range(40)]
    assert {"order": "000000000007"}.items() <= json.loads(STREAM.payload(7)).items()


def test_a_payload_has_any_size():
    """A larger payload is as long as it was asked for, and no two are the same."""
    stream = Stream(name="bench.large", count=3, payload_bytes=20_000)
    assert {20_000} == {len(stream.payload(number)) for number in range(3)}
    assert 3 == len({stream.payload(number) for number in range(3)})


@pytest.mark.parametrize(
    "event_id", ["bench.some-000000000040", "bench.other-000000000001", "bench.some-1", "x"]
)
def test_an_id_of_nobody_is_refused(event_id):
    """An id that the stream does not have is not taken for one of its messages."""
    with pytest.raises(ValueError, match="is none of"):
        STREAM.number(event_id)


def test_rows_for_append_are_the_messages():
    """A range as `append` takes it has ids, keys, payloads and headers of the same numbers."""
    rows = STREAM.arrow(first=38, count=2).to_pylist()
    assert [STREAM.event_id(38), STREAM.event_id(39)] == [row["event_id"] for row in rows]
    assert STREAM.payload(39) == rows[1]["payload"]
    assert STREAM.headers(39) == dict(rows[1]["headers"])
    assert STREAM.key(39) == rows[1]["ordering_key"]


def test_shares_cover_everything_once():
    """The parts of a range follow each other and end where it ends."""
    assert [(0, 4), (4, 4), (8, 2)] == list(shares(10, 4))
    assert [] == list(shares(0, 4))


def test_all_messages_in_the_order_of_their_keys_pass():
    """Keys may overtake each other, as partitions do."""
    order = sorted(range(len(STREAM)), key=lambda number: number % STREAM.keys)
    check(arrived(*order), STREAM)
    check(arrived(*order[:7]), STREAM, only=7)


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        (arrived(*range(39)), "39 of 40"),
        (arrived(*range(40), 39), "delivered twice"),
        (arrived(4, 0, *range(1, 4), *range(5, 40)), "behind a later one"),
        ([*arrived(*range(39)), Arrived(number=39, payload=b"{}")], "altered"),
        ([*arrived(*range(39)), Arrived(number=39, own_key="x")], "altered"),
        ([*arrived(*range(39)), Arrived(number=39, at=3)], "behind a later one"),
        ([Arrived(number=0, stream=Stream(name="other", count=1))], "of nobody"),
    ],
)
def test_what_is_not_as_it_should_be_fails(messages, complaint):
    """A message that is missing, repeated, out of order, altered or strange ends the benchmark."""
    with pytest.raises(BenchmarkFailed, match=complaint):
        check(messages, STREAM)


def test_without_a_promise_of_order_only_the_rest_is_checked():
    """A contender that keeps no order is not held to it, but to everything else."""
    check(arrived(*reversed(range(40))), STREAM, in_order=False)
    with pytest.raises(BenchmarkFailed):
        check(arrived(*reversed(range(1, 40))), STREAM, in_order=False)


def test_a_disk_without_room_is_told_before_anything(tmp_path: Path, monkeypatch):
    """A case of large payloads says how much room it needs, and begins nothing without it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check_room(1)
    with pytest.raises(BenchmarkFailed, match=r"must have 2500000000\.0 GB free"):
        large_payloads.run(size=1e8, rounds=1)


def test_arithmetic():
    """Medians, rates and ratios keep four digits; percentiles are values that were measured."""
    assert 2.0 == median([3, 1, 2])
    assert 33330.0 == rate(100_000, 3)
    assert 0.3333 == ratio(1, 3)
    assert (1, 2, 4) == tuple(percentile([4, 2, 1, 3], share) for share in (0.25, 0.5, 1.0))
    assert 50 == best({100: 2.0, 50: 2.0, 10: 1.0})
    assert 2.0 == drift([1, 1, 5, 5, 2, 2])
    assert 0.5 == spread([2, 3, 2.5])
    assert (1000, 50_000) == (scaled(100, 1), scaled(1_000_000, 0.05))


def test_what_work_cost():
    """A cost gives rate and CPU time per event; a document has all rounds and their medians."""
    cost = Cost(events=1000, seconds=0.5, cpu_seconds=0.04)
    slower = Cost(events=1000, seconds=1.0, cpu_seconds=0.05)
    assert (2000.0, 40.0) == (cost.rate, cost.cpu_microseconds)
    assert {"rate": 1500.0, "rates": [2000.0, 1000.0], "cpu_microseconds": 45.0} == rates(
        [cost, slower]
    )
    assert {"drain": [{"events": 1000, "seconds": 0.5, "cpu_seconds": 0.04}]} == as_documents(
        {"drain": [cost]}
    )


def test_the_work_of_what_was_started_counts():
    """CPU time of a process below this one counts while it runs, and so does that of one that the
    process has waited for.
    """
    burn = "import time\nwhile time.process_time() < 0.3: pass\n"
    program = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}], check=True)\n"
        f"{burn}print('done', flush=True)\nsys.stdin.read()"
    )
    meter = Meter()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"done\n" == process.stdout.readline()
        cost = meter.cost(1)
        process.communicate()
    assert cost.cpu_seconds > 0.5
    assert cost.seconds > 0.5


def test_the_backlog_from_which_on_we_are_ahead():
    """It is the smallest that we win with all larger ones; none if we lose the largest."""
    theirs = {10: 5.0, 20: 5.0, 30: 5.0}
    assert 20 == ahead_from({10: 9.0, 20: 5.0, 30: 6.0}, {**theirs, 10: 10.0})
    assert ahead_from({10: 9.0, 20: 9.0, 30: 4.0}, theirs) is None


def test_recovery_counts_from_the_kill():
    """What was in flight and what was not count by themselves; what was done before, not at all."""
    published = {"before": 99.0, "waited": 104.0, "flew-1": 112.0, "flew-2": 115.0}
    found = recovery(published, at=100.0, in_flight={"flew-1", "flew-2"})
    assert (2, 12, 4, 15) == (found.in_flight, found.redelivered, found.others, found.over)


def test_files_are_read_as_they_grow(tmp_path: Path):
    """A line counts once and when it is whole; a copy more or an event less is found."""
    folder, delivered = tmp_path / "delivered", Delivered(tmp_path)
    folder.mkdir()
    file = folder / "one.jsonl"
    file.write_text('{"event_id":"event-000000000"}\n{"event_id":"event-0000')
    assert 1 == delivered.read()
    with file.open("a") as lines:
        lines.write('00001"}\n')
    assert 2 == delivered.read()
    delivered.check(2)
    (folder / "two.jsonl").write_text('{"event_id":"event-000000001"}\n')
    delivered.check(2, once=False)
    for wrong in (1, 2, 3):
        with pytest.raises(BenchmarkFailed):
            delivered.check(wrong)


def test_events_of_commands_are_numbered():
    """The number of an event is found in its id."""
    assert "lpad(id, 9, '0')" in insert(3, 4)
    assert "range(3, 7)" in insert(3, 4)
    assert 12 == number_of("event-000000012")


def costs(seconds: float, cpu: float) -> dict[str, list[dict[str, float]]]:
    """Return the costs of a document."""
    return {"drain": [{"events": 100, "seconds": seconds, "cpu_seconds": cpu}]}


def test_two_sides_are_compared_round_by_round():
    """Each round gives a ratio of this code to the other; what only one side has is left out."""
    rounds = [
        (costs(2.0, 4.0), {**costs(1.0, 4.2), "new": []}),
        (costs(1.0, 1.0), costs(1.5, 2.0)),
        (costs(1.0, 1.0), costs(1.0, 1.0)),
    ]
    found = pairs.compare(rounds)
    assert {"drain": pairs.Compared(cpu=(1.05, 2.0, 1.0), wall=(0.5, 1.5, 1.0))} == found
    last = pairs.table(found).splitlines()[-1]
    assert "| drain | 1.050 | 1.000 to 2.000 | 1.000 | 0.500 to 1.500 |" == last


def test_a_commit_is_checked_out_and_taken_away():
    """A pair needs a tree of the other commit, which is gone afterwards."""
    with pairs.worktree("HEAD") as tree:
        assert (tree / "benchmarks" / "run.py").is_file()
        listed = subprocess.run(
            ["git", "worktree", "list"], cwd=tree, check=True, capture_output=True, text=True
        ).stdout
        assert str(tree) in listed
    assert not tree.exists()


def test_a_commit_that_is_not_there_is_told(capsys):
    """A pair with a commit of nobody ends with exit 1 and git's word."""
    assert 1 == pairs.main(["drain", "--before", "no-such-commit"])
    assert "no-such-commit" in capsys.readouterr().out


def test_an_event_fails_at_its_first_attempt_only():
    """About one in twenty fails, always the same ones, and never again."""
    ids = [Stream(name="bench.f", count=4000).event_id(number) for number in range(4000)]
    failing = [name for name in ids if fails(name, 1)]
    assert 0.5 < len(failing) / (len(ids) / ONE_IN) < 1.5
    assert not any(fails(name, 2) for name in ids)


def test_latencies_count_from_the_end_of_the_append():
    """An event that arrives two seconds after its append took that, and more from the call."""
    made = [Appended(called=float(n), returned=n + 0.5) for n in range(30)]
    arrived_at = {
        100 + n * PER_SECOND + event: n + 2.5 for n in range(30) for event in range(PER_SECOND)
    }
    found = latencies(made, arrived_at, first=100)
    assert {"p50": 2.0, "p95": 2.0} == found["seconds"]
    assert {"p50": 2.5, "p95": 2.5} == found["with_the_append"]
    assert ([2.5, 2.5, 2.5], 1.0, 0) == (found["course"], found["drift"], found["late_appends"])


def contender(events_per_second: float, **more: Any) -> dict[str, Any]:
    """Return what was measured of one who delivers."""
    return {"rate": events_per_second, "rates": [events_per_second], "events": 10, **more}


def comparison(ours: float = 40_000.0, table: float = 9000.0) -> dict[str, Any]:
    """Return the document of a drain."""
    return {
        "case": "drain",
        "size": 0.5,
        "date": "2026-11-22",
        "machine": {
            "cores": 2,
            "processor": "some",
            "memory_gib": 8,
            "system": "Linux x86_64",
            "load_before": 0.1,
        },
        "versions": {"commit": "abc", "python": "3.11", "kafka": "4.1"},
        "what": {"events": 1_000_000, "rounds": 3, "processes": 2, "partitions": 4},
        "contenders": {
            "delta-outbox": contender(ours, cold=20_000.0, batch=50_000, seconds=[25.0]),
            "raw producer": contender(200_000.0),
            "skip locked": contender(table, batch=1000),
            "procrastinate": contender(300.0, batch=30),
        },
        "ratios": {},
    }


def test_the_table_says_who_wins():
    """A slower peer is so many times slower; a faster one is said to win."""
    [line] = [line for line in drain(comparison()).splitlines() if "skip locked" in line]
    assert "| 9,000 | 1,000 | 0.045 | ours: 4.4 times |" in line
    [line] = [line for line in drain(comparison(ours=8000.0)).splitlines() if "locked" in line]
    assert "**it wins**" in line


def test_the_page_is_the_text_with_the_tables_in_it():
    """Hand-written lines stay; of a section whose case was not measured the name stays; a wrong
    name is refused.
    """
    text = (
        "# Speed\n\n## Drain\n\nBefore.\n\n<!-- table: drain -->\n\nAfter.\n\n"
        "## Trickle\n\nWords.\n\n<!-- table: trickle -->\n"
    )
    written = page(text, {"drain": comparison()})
    assert "Before.\n\n1,000,000 pending events" in written
    assert "2 cores (some), 8 GiB" in written
    assert "At 0.5 of the full size." in written
    end = "\n\nAfter.\n\nNot measured yet (`python -m benchmarks.run NAME`): `trickle`.\n"
    assert written.endswith(end)
    with pytest.raises(UnknownTable):
        page("<!-- table: nothing -->", {})


def test_the_text_has_a_place_for_every_case():
    """Each table has its place in the text, once."""
    text = TEXT.read_text(encoding="utf-8")
    assert dict.fromkeys(TABLES, 1) == {name: text.count(f"table: {name} ") for name in TABLES}
    assert all(f"`{name}`" in page(text, {}) for name in TABLES)


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_made_of_what_its_case_writes(name, measured):
    """Every case has a table with a row for each of its figures."""
    lines = TABLES[name](measured[name]).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) > 2
    assert 1 == len({row.count("|") for row in rows})


@pytest.fixture
def measured() -> dict[str, dict[str, Any]]:
    """Return a document for each case, as it writes it."""
    figures = {"p50": 1.0, "p95": 2.0}
    whose = ("live_heap", "driver", "workers")
    names = ("heap_at_rest", *whose, *(f"{one}_most" for one in whose))
    memory = {f"{name}_mib": 100.0 for name in names}
    most = {f"{one}_most_mib": 100.0 for one in ("jvm", "driver", "worker")}
    both = {"without": 2.0, "with an old retry": 3.0}
    one_event = [f"a later run, {before} before it" for before in ("nothing", "them")]
    to_bare = {
        "seconds": {"a bare PySpark": 6.0, "outbox status": 12.0},
        "ratios": {"outbox status": 2.0},
    }
    return {
        "drain": comparison(),
        "history": {
            "what": {"past": 10, "events": 5, "appended": 1},
            "seconds": {"none": {"drain": 1.0}, "long": {"drain": 1.1}},
            "ratios": {"drain": 1.1},
        },
        "backlog": {
            "backlogs": {"1000000": {"rate": 10_000.0, **memory}},
            "spread": {"driver_mib": 0.1},
        },
        "large_payloads": {
            "drains": {
                "900 KB, files": {"gigabytes": 1.0, "mib_per_second": 100.0, **most},
            },
        },
        "trickle": {
            "what": {"per_second": 200, "seconds": 600},
            "seconds": figures,
            "with_the_append": figures,
            "drift": 1.0,
            "cpu": {"producer_alone": 0.5, "together": 1.5, "share_of_the_producer": 0.33},
        },
        "hot_key": {
            "what": {"hot": 10, "others": 100},
            "rate": {"with": 9.0, "without": 10.0},
            "ratios": {"with to without": 0.9},
        },
        "two_destinations": {
            "what": {"events": 100},
            "rate": {"one": 10.0, "two": 9.0},
            "ratios": {"two to one": 0.9},
        },
        "dead_destination": {
            "what": {"events": 100, "hanging": 10},
            "rate": {"with": 9.0, "without": 10.0},
            "ratios": {"with to without": 0.9},
        },
        "failing": {
            "what": {"failing": 0.05},
            "rate": {"clean": 10.0, "failing": 8.0},
            "ratios": {"failing to clean": 0.8},
        },
        "old_retry": {
            "what": {"fresh": 10, "days": 30, "past": 100},
            "seconds": both,
            "mib_read": both,
        },
        "first_drain": {
            "drains": {"third of a million": {"rate": 10.0, "cpu_microseconds": 38.0}},
            "ratios": {"first to third": 0.5},
        },
        "small_drains": {
            "rates": {"1000": {"delta-outbox": 1.0, "skip locked": 2.0}},
            "ratios": {"1000": 0.5},
            "ahead_from": None,
        },
        "batch_sizes": {
            "what": {"default": 10_000},
            "rates": {"30,000 of 512 bytes": {"10000": 9.0, "50000": 10.0}},
            "ratios": {"30,000 of 512 bytes": 0.9},
        },
        "exceptions": {
            "seconds": {"a replay": {"1,000 fresh events": {"without": 1.0, "with": 2.0}}},
            "ratios": {"a replay": {"1,000 fresh events": {"seconds": 2.0, "cpu_seconds": 3.0}}},
        },
        "scheduled": {
            "what": {"scheduled": 100, "claimed": 10},
            "seconds": dict.fromkeys(one_event, 1.0),
            "cpu_seconds": dict.fromkeys(one_event, 1.0),
            "idle_cores": {"nothing": 0.01, "them": 0.02},
            "ratios": {"a later run": {"seconds": 1.0, "cpu_seconds": 1.0}},
        },
        "two_relays": {
            "rate": {"1 relay, 1 lane": 100.0, "2 relays, 8 lanes": 160.0},
            "ratios": {"1 relay, 1 lane": 1.0, "2 relays, 8 lanes": 1.6},
            "cores": {"1 relay, 1 lane": 0.5, "2 relays, 8 lanes": 0.9},
            "newcomer": {"seconds": [12.0], "beats": 1.2},
        },
        "recovery": {
            "what": {"kills": 50, "lease": 10},
            **{name: {**figures, "most": 3.0} for name in ("redelivered", "others", "over")},
        },
        "checks": {
            "what": {"events": 100},
            "seconds": {"delivery": 10.0, "invariants": 12.0},
            "ratios": {"invariants to delivery": 1.2},
        },
        "cold": to_bare,
        "workflows": {
            "what": {"instances": 9, "waiting": 5, "ended": 7, "rounds": 1, "seconds": 20},
            "categories": {"keyed": {"rate": 1.0}, "opaque": {"rate": 2.0}},
            "steps": {
                name: {"rate": 3.0, "next_call": {"p50": 0.1, "p95": 0.2}}
                for name in ("alone", "beside", "peer")
            },
        },
        "served": {**to_bare, "what": {"few": 5, "appends": 20}, "few_events": figures},
        "publishers": {
            "destinations": {
                "redis": {"rate": 1000.0, "events": 10},
                "nats": {"not_there": "missing"},
            },
        },
    }


def test_results_are_found_again(tmp_path: Path):
    """A document is saved under the name of its case, with what it was measured on."""
    seed = random.randrange(10**6)
    found: dict[str, Any] = {"what": {"seed": seed}}
    file = save(
        tmp_path, "drain", size=0.1, measured=found, machine={"cores": 2}, versions={"java": "17"}
    )
    assert "drain.json" == file.name
    document = load(tmp_path)["drain"]
    assert (0.1, {"seed": seed}, {"cores": 2}, {"java": "17"}) == (
        document["size"],
        document["what"],
        document["machine"],
        document["versions"],
    )


@pytest.mark.parametrize("arguments", [["nothing"], ["drain", "--size", "0"], ["--rounds", "0"]])
def test_wrong_usage_is_refused(arguments, capsys):
    """An unknown case, size or number of rounds ends with exit 2 before anything is started."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert 2 == ended.value.code
    assert "error: argument" in capsys.readouterr().err


def test_a_third_party_writes_down_what_it_is_asked():
    """Each call once, in order, with when it came and when it was answered; it knows its keys."""
    with third_party() as party:
        assert not party.find("first-1")
        for key in ("first-1", "first-2", "second-1"):
            party.act(key)
        assert party.find("first-1")
        calls = party.calls()
        assert [] == party.calls()
    assert ["first-1", "first-2", "second-1"] == [one.key for one in calls]
    instants = [at for one in calls for at in (one.came, one.answered)]
    assert sorted(instants) == instants


def test_the_time_to_the_next_call_is_that_of_one_instance():
    """It goes from the answer to a step until the next step of the same instance, and no other."""
    calls = [
        Call(key="first-1", came=0.0, answered=1.0),
        Call(key="first-2", came=0.0, answered=2.0),
        Call(key="second-2", came=2.5, answered=3.0),
        Call(key="second-1", came=4.0, answered=5.0),
        Call(key="third-1", came=5.25, answered=6.0),
        Call(key="third-2", came=9.0, answered=9.0),
    ]
    found = delays_between(calls, ("first", "second", "third"))
    assert [0.25, 0.5, 3.0, 6.0] == sorted(found)
