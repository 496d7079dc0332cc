"""How far into a backlog something has been tried."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_outbox.delta.files.added_files import AddedFile
from delta_outbox.relay.backlog import last_touched

COUNTS = pa.table({"arrival": [3, 4, 6], "waiting": [1, 5, 7], "untouched": [1, 5, 7]})


def files(*rows: tuple[int, int]) -> list[AddedFile]:
    """Return files, each of (version, rows)."""
    return [AddedFile(path=Path("f"), version=version, rows=count) for version, count in rows]


@pytest.mark.parametrize(
    ("rows", "reached"),
    [
        ([(3, 1), (4, 2), (4, 3), (6, 7)], 2),  # all of them as they came
        ([(3, 2), (4, 5), (6, 7)], 3),  # one of the first is delivered
        ([(3, 1), (4, 5), (5, 2), (6, 7)], 5),  # all of one commit are
        ([(3, 1), (4, 5), (6, 7), (7, 1)], 7),  # also of the last one
    ],
)
def test_a_commit_is_untouched_if_all_its_rows_are(
    rows: list[tuple[int, int]], reached: int
) -> None:
    """What is missing among the open ones has been delivered, or is no event of its own."""
    assert reached == last_touched(COUNTS, files(*rows), before=2)


def test_what_waits_again_has_been_touched() -> None:
    """A delivery that waits after a failure is not as it came."""
    counts = COUNTS.set_column(2, "untouched", pa.array([1, 4, 7]))
    assert 4 == last_touched(counts, files((3, 1), (4, 5), (6, 7)), before=2)
