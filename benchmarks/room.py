"""The room on the disk that a case needs, which it looks for before it begins."""

from __future__ import annotations

import shutil
import tempfile
from typing import Final

from benchmarks.results import BenchmarkFailed

# Of an event of 512 bytes: in the log, in the topic, in a database or between two stages of Spark.
EVENT_BYTES: Final = 3000


def check_room(needed: float) -> None:
    """Demand that the disk for temporary files has room.

    Args:
        needed: bytes that will lie there at once.

    Raises:
        BenchmarkFailed: it has not.
    """
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BenchmarkFailed(
            f"{folder} must have {needed / 1e9:.1f} GB free. It has {free / 1e9:.1f}: set TMPDIR "
            "to a folder of a larger disk, or give a smaller --size."
        )
