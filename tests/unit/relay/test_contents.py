"""What a worker reads from the files of the log is what was planned, or nothing is sent."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_outbox.core.byte_bounds import AT_ONCE
from delta_outbox.delta.added_files import AddedFile
from delta_outbox.delta.files.event_files import (
    OF_EVENTS,
    UnreadableFile,
    first_states,
    open_file,
    read_files,
    with_locations,
)
from delta_outbox.delta.files.payload_files import payload_lengths, read_parts
from delta_outbox.lifecycle.results import Delivered, Result
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.relay.publish import slice as worker
from delta_outbox.relay.publish.contents import (
    is_readable,
    read_slice,
    with_contents,
    written_slices,
)
from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.routing import ROUTED
from delta_outbox.relay.publish.slice import Job, publish_from_files

SENT: list[tuple[str, bytes, Mapping[str, str | None] | None]] = []


class Collecting:
    """Keep what is sent."""

    ordered: ClassVar[bool] = True

    def open(self, settings: Mapping[str, object]) -> None:
        """Need nothing."""

    def publish(self, events: EventBatch) -> list[Result]:
        """Deliver everything."""
        SENT.extend((event.event_id, event.payload, event.headers) for event in events)
        return [Delivered() for _ in events]

    def close(self) -> None:
        """Keep what was sent."""


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    SENT.clear()


def write(
    folder: Path,
    name: str,
    first: int,
    count: int,
    *,
    group: int,
    told: int | None = None,
    times: int = 50,
) -> AddedFile:
    """Write a file of the event log as Spark does: instants of 96 bits, a map for the headers. It
    says of each payload how large it is, if told, as files of format 2 do.
    """
    numbers = range(first, first + count)
    instants = pa.array([10**15 + n for n in numbers], pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            "event_id": [f"e-{n}" for n in numbers],
            "event_type": ["t"] * count,
            "payload": pa.array([b"%d" % n * times for n in numbers], pa.binary()),
            "created_at": instants,
            "ordering_key": [f"k-{n % 3}" for n in numbers],
            "partition_key": pa.nulls(count, pa.string()),
            "headers": pa.array(
                [[("n", str(n))] if n % 2 else None for n in numbers],
                pa.map_(pa.string(), pa.string()),
            ),
            "metadata": pa.nulls(count, pa.map_(pa.string(), pa.string())),
            "available_at": pa.nulls(count, pa.timestamp("us", "UTC")),
            "ordinal": pa.array(numbers, pa.int64()),
            "appended_at": instants,
        }
    )
    if told is not None:
        table = table.append_column("payload_bytes", pa.array([told] * count, pa.int32()))
    path = folder / name
    pq.write_table(
        table,
        path,
        row_group_size=group,
        use_dictionary=["event_type"],
        use_deprecated_int96_timestamps=True,
    )
    return AddedFile(path=path, version=1, rows=count)


def arrived(files: Sequence[AddedFile]) -> pa.Table:
    """Return the deliveries of the events of files."""
    return first_states(read_files(files, OF_EVENTS))


def routed(deliveries: pa.Table, slices: int) -> pa.Table:
    """Return where deliveries go, in slices by turns."""
    count = deliveries.num_rows
    given: dict[str, Any] = {
        "position": range(count),
        "slice": [n % slices for n in range(count)],
        "id": deliveries["event_id"],
        "at_arrival": deliveries["arrival"],
        "destination": ["default"] * count,
        "lifecycle": [0] * count,
        "attempt": [1] * count,
        "key": deliveries["ordering_key"],
        "scope": deliveries["ordering_key"],
        "route": ["t"] * count,
        "format": [None] * count,
    }
    return pa.table({name: given[name] for name in ROUTED.names}, schema=ROUTED)


def job() -> Job:
    """Return a job for `Collecting`."""
    return Job(
        claim_id="c",
        destinations={"default": (f"{__name__}:Collecting", {})},
        deadline=Deadline.after(60),
        budget=60,
    )


def codes(batches: Sequence[pa.RecordBatch]) -> dict[int, str]:
    """Return the answer of each position."""
    return {
        position: code
        for batch in batches
        for position, code in zip(
            batch["position"].to_pylist(), batch["code"].to_pylist(), strict=True
        )
    }


def test_rows_are_read_from_where_they_lie(tmp_path: Path) -> None:
    """Every delivery of a slice gets its payload and headers, in the order of its claim, however
    the rows lie in files and row groups, and however few are handed out at once.
    """
    files = [write(tmp_path, f"{n}.parquet", n * 100, 100, group=30) for n in range(3)]
    everything = arrived(files)
    order = list(range(300))
    random.Random(7).shuffle(order)
    claim = everything.take(pa.array(order[:120]))
    ids = claim["event_id"].to_pylist()
    with written_slices(routed(claim, 2), claim, slices=2, folder=tmp_path) as path:
        for number in (0, 1):
            parts = list(with_contents(read_slice(path, number), traced=True, at_once=7))
            assert max(len(part) for part in parts) == 7
            found = pa.Table.from_batches(parts)
            assert ids[number::2] == found["event_id"].to_pylist()
            for row in found.to_pylist():
                n = int(row["event_id"][2:])
                assert (b"%d" % n * 50, [("n", str(n))] if n % 2 else None) == (
                    row["payload"],
                    row["headers"],
                )
                assert row["metadata"] is None
    assert not Path(path).exists()


@pytest.mark.parametrize("told", [80_000, None])
def test_no_more_bytes_are_read_than_fit(tmp_path: Path, told: int | None) -> None:
    """Files are read by so many bytes at once, whatever the number of rows in a row group; also
    where a file does not say how large its payloads are.
    """
    written = write(tmp_path, "a.parquet", 100, 400, group=400, told=told, times=25_000)
    with open_file(str(written.path)) as file:
        parts = [(len(part), part.nbytes) for part in read_parts(file, 0, ["payload"])]
    assert 400 == sum(rows for rows, _ in parts)
    assert AT_ONCE >= max(read for _, read in parts)
    assert AT_ONCE // 4 < sum(read for _, read in parts) // len(parts)


@pytest.mark.parametrize("told", [150, None])
def test_no_more_bytes_are_handed_out_than_fit(tmp_path: Path, told: int | None) -> None:
    """Rows are handed out by so many bytes at once, whatever their number in a claim."""
    most = 4096
    claim = arrived([write(tmp_path, "a.parquet", 100, 500, group=500, told=told)])
    assert {150} == set(claim["payload_bytes"].to_pylist())
    order = list(range(500))
    random.Random(7).shuffle(order)
    claim = claim.take(pa.array(order))
    with written_slices(routed(claim, 1), claim, slices=1, folder=tmp_path) as path:
        parts = list(with_contents(read_slice(path, 0), traced=False, bytes_at_once=most))
    assert claim["event_id"].to_pylist() == pa.Table.from_batches(parts)["event_id"].to_pylist()
    assert most >= max(part.nbytes for part in parts)
    assert most // 4 < sum(part.nbytes for part in parts) // len(parts)


def test_a_payload_that_a_file_holds_once_is_large_all_the_same(tmp_path: Path) -> None:
    """A payload that many rows share, which a file holds once, is read a few times at once."""
    size = 400_000
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"payload": pa.array([b"x" * size] * 100, pa.binary())}), path)
    with open_file(str(path)) as file:
        rows = [len(part) for part in read_parts(file, 0, ["payload"])]
        assert [size] * 100 == payload_lengths(file).to_pylist()
    assert 100 == sum(rows)
    assert 2 <= max(rows) <= AT_ONCE // size


def test_the_commit_says_where_an_event_lies(tmp_path: Path) -> None:
    """What a commit appended is found in its files; not an id that has several rows there, nor one
    that another commit has.
    """
    files = [write(tmp_path, f"{n}.parquet", n * 10, 10, group=4) for n in range(2)]
    given = arrived(files).take(pa.array([13, 2, 5, 19]))
    known = given.select([name for name in given.column_names if name not in ("file", "row")])
    found = with_locations(known, {1: files})
    assert given["row"].to_pylist() == found["row"].to_pylist()
    assert given["file"].to_pylist() == found["file"].to_pylist()
    twice = known.set_column(
        known.schema.get_field_index("ambiguous"), "ambiguous", [[False, True, False, False]]
    )
    assert [3, None, 5, 9] == with_locations(twice, {1: files})["row"].to_pylist()
    assert [None] * 4 == with_locations(known, {2: files})["file"].to_pylist()
    files[0].path.unlink()
    with pytest.raises(UnreadableFile):
        with_locations(known, {1: files})


def test_large_headers_are_handed_out_by_bytes_too(tmp_path: Path) -> None:
    """Rows whose headers are larger than their payloads are handed out few at a time."""
    file = write(tmp_path, "a.parquet", 0, 64, group=64, told=1)
    table = pq.read_table(file.path)
    large = pa.array([[("h", "x" * 10_000)]] * 64, pa.map_(pa.string(), pa.string()))
    index = table.schema.get_field_index("headers")
    pq.write_table(table.set_column(index, "headers", large), file.path)
    claim = arrived([file])
    with written_slices(routed(claim, 1), claim, slices=1, folder=tmp_path) as path:
        parts = list(with_contents(read_slice(path, 0), traced=False, bytes_at_once=50_000))
    assert [4] * 16 == [len(part) for part in parts]


def test_an_event_for_two_destinations_is_read_once(tmp_path: Path) -> None:
    """A row that is wanted twice is handed out twice."""
    everything = arrived([write(tmp_path, "a.parquet", 0, 4, group=4, told=50)])
    claim = everything.take(pa.array([0, 0, 1, 1]))
    with written_slices(routed(claim, 1), claim, slices=1, folder=tmp_path) as path:
        (part,) = with_contents(read_slice(path, 0), traced=False)
    assert [b"0" * 50] * 2 + [b"1" * 50] * 2 == part["payload"].to_pylist()


def test_a_size_that_the_log_says_is_believed(tmp_path: Path) -> None:
    """No payload is read for its size where its row says it."""
    claim = arrived([write(tmp_path, "a.parquet", 0, 4, group=4, told=7)])
    assert [7] * 4 == claim["payload_bytes"].to_pylist()


def test_a_slice_is_published_from_the_files(tmp_path: Path) -> None:
    """A worker sends what lies in the files, and answers for each delivery."""
    claim = arrived([write(tmp_path, "a.parquet", 0, 10, group=4)])
    with written_slices(routed(claim, 3), claim, slices=3, folder=None) as path:
        answers = list(publish_from_files(job(), path, attempt_number=0, part=1))
    assert dict.fromkeys((1, 4, 7), worker.DELIVERED) == codes(answers)
    assert [("e-1", b"1" * 50, {"n": "1"})] == SENT[:1]


def test_a_repeated_task_reads_and_sends_nothing(tmp_path: Path) -> None:
    """Whoever repeats a slice says of each delivery that it crashed, also if the files are gone."""
    file = write(tmp_path, "a.parquet", 0, 4, group=4)
    claim = arrived([file])
    file.path.unlink()
    with written_slices(routed(claim, 1), claim, slices=1, folder=tmp_path) as path:
        answers = list(publish_from_files(job(), path, attempt_number=1, part=0))
    assert dict.fromkeys(range(4), worker.CRASHED) == codes(answers)
    assert [] == SENT


@pytest.mark.parametrize("harm", ["gone", "others", "shorter", "no parquet"])
def test_what_cannot_be_read_is_not_sent(tmp_path: Path, harm: str) -> None:
    """If one file of a slice is gone, or holds other rows than were planned, nothing is sent and
    each delivery is answered for: Spark is to be asked.
    """
    files = [write(tmp_path, name, n * 10, 10, group=4) for n, name in enumerate("ab")]
    claim = arrived(files)
    if harm == "gone":
        files[0].path.unlink()
    elif harm == "no parquet":
        files[0].path.write_bytes(b"x" * 100)
    else:
        write(tmp_path, "a", 90, 10 if harm == "others" else 5, group=4)
    with written_slices(routed(claim, 1), claim, slices=1, folder=tmp_path) as path:
        answers = list(publish_from_files(job(), path, attempt_number=0, part=0))
    assert dict.fromkeys(range(20), worker.NOT_READ) == codes(answers)
    assert [] == SENT


def test_a_file_that_is_gone_when_it_is_planned(tmp_path: Path) -> None:
    """A file that is not there, or that lacks a column of the log, is not taken for empty."""
    file = write(tmp_path, "a.parquet", 0, 4, group=4)
    pq.write_table(pq.read_table(file.path).drop_columns(["ordinal"]), file.path)
    with pytest.raises(UnreadableFile):
        arrived([file])
    file.path.unlink()
    with pytest.raises(UnreadableFile):
        arrived([file])


def test_the_commit_tells_what_a_file_does_not(tmp_path: Path) -> None:
    """The values of partition columns are those of the commit, typed, whatever the file holds."""
    file = replace(
        write(tmp_path, "a.parquet", 0, 3, group=4),
        version=7,
        partition={"created_date": "2026-01-02", "lane": "4", "event_type": None},
    )
    columns = ("lane", "event_id", "created_date", "event_type", "_commit_version", "row")
    found = read_files([file], columns)
    assert list(columns) == found.column_names
    day = {"created_date": date(2026, 1, 2), "lane": 4, "event_type": None, "_commit_version": 7}
    assert [{"event_id": f"e-{n}", "row": n, **day} for n in range(3)] == found.to_pylist()
    assert [pa.int32(), pa.date32()] == [found["lane"].type, found["created_date"].type]
    far = replace(file, partition={"created_date": "+10000-01-01"})
    with pytest.raises(UnreadableFile):
        read_files([far], ("created_date",))


def test_old_instants_are_left_to_spark(tmp_path: Path) -> None:
    """An instant before 1970 may be of another calendar, and Spark alone knows of which."""
    file = write(tmp_path, "a.parquet", 0, 2, group=4)
    old = pa.array([0, -1], pa.timestamp("us", "UTC"))
    table = pq.read_table(file.path)
    place = table.schema.get_field_index("available_at")
    pq.write_table(table.set_column(place, "available_at", old), file.path)
    assert 2 == read_files([file], ("created_at",)).num_rows
    with pytest.raises(UnreadableFile):
        read_files([file], ("created_at", "available_at"))


def test_sizes_are_looked_up_where_the_files_are(tmp_path: Path) -> None:
    """Where rows do not say how large their payloads are, their files do, if they are known."""
    told = write(tmp_path, "a.parquet", 0, 2, group=4, told=7)
    untold = write(tmp_path, "b.parquet", 10, 2, group=4)
    rows = read_files([told, untold], OF_EVENTS).take(pa.array([2, 1, 3, 0]))
    assert [100, 7, 100, 7] == first_states(rows)["payload_bytes"].to_pylist()
    for name in ("file", "row"):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.nulls(4, rows.schema.field(name).type))
    assert [None, 7, None, 7] == first_states(rows)["payload_bytes"].to_pylist()


def test_little_of_large_files_is_left_to_spark(tmp_path: Path) -> None:
    """Files are read by row groups, so a claim that lies scattered in large ones is not read from
    them; one that is most of them is, and a small amount always.
    """
    everything = arrived([write(tmp_path, "a.parquet", 0, 1000, group=100)])
    scattered = everything.take(pa.array(range(0, 1000, 50)))
    assert is_readable(everything)
    assert is_readable(scattered)
    assert is_readable(scattered, free_bytes=0)
    little = {"free_bytes": 0, "free_rows": 999}
    assert is_readable(everything, **little)
    assert not is_readable(scattered, **little)
    assert not is_readable(everything.drop_columns(["file"]), **little)
