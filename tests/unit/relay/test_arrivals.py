"""How far into a backlog something has been tried."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_outbox.relay.plan.arrivals import last_touched

COUNTS = pa.table({"arrival": [3, 4, 6], "due": [1, 5, 7], "untouched": [1, 5, 7]})


@pytest.mark.parametrize(
    ("rows", "reached"),
    [
        ([(3, 1), (4, 5), (6, 7)], 2),  # all of them as they came
        ([(3, 2), (4, 5), (6, 7)], 3),  # one of the first is delivered
        ([(3, 1), (4, 5), (5, 2), (6, 7)], 5),  # all of one commit are
        ([(3, 1), (4, 5), (6, 7), (7, 1)], 7),  # also of the last one
    ],
)
def test_a_commit_is_untouched_if_all_its_rows_are(
    rows: list[tuple[int, int]], reached: int
) -> None:
    """What is missing among the open ones has been delivered, or is no event of its own."""
    assert reached == last_touched(COUNTS, dict(rows), before=2)


def test_what_waits_again_has_been_touched() -> None:
    """A delivery that waits after a failure is not as it came."""
    counts = COUNTS.set_column(2, "untouched", pa.array([1, 4, 7]))
    assert 4 == last_touched(counts, {3: 1, 4: 5, 6: 7}, before=2)
