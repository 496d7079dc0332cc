"""What the storage refuses is told apart from everything else that may go wrong."""

from __future__ import annotations

import errno

import pytest

from delta_outbox.core.errors import DiskFull, NotWritable, SequenceTaken
from delta_outbox.delta.storage_errors import full_disk, refused_write, writing_to

JAVA = """An error occurred while calling o101.saveAsTable.
: org.apache.spark.SparkException: Job aborted.
Caused by: java.io.{kind}: {text}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
FULL = ["No space left on device", "Disk quota exceeded"]
DENIED = [
    "/w/t/_delta_log/.00000000000000000002.json.a1.tmp (Permission denied)",
    "/w/t/_delta_log/.00000000000000000002.json.a1.tmp (Read-only file system)",
    "/w/t/_delta_log/.00000000000000000002.json.a1.tmp (Operation not permitted)",
    "Permission denied: user=ann, access=WRITE, inode=/w/t",
]


@pytest.mark.parametrize("text", FULL)
def test_a_full_disk(text):
    """A full disk is one line with the table and what the storage said, without Java's trace."""
    found = refused_write(RuntimeError(JAVA.format(kind="IOException", text=text)), table="o.t")
    assert isinstance(found, DiskFull)
    assert (
        str(found) == f"o.t: a write needs room, and there is none: Caused by: "
        f"java.io.IOException: {text}"
    )


@pytest.mark.parametrize("text", DENIED)
def test_a_missing_right(text):
    """A missing right to write names the file."""
    error = RuntimeError(JAVA.format(kind="FileNotFoundException", text=text))
    found = refused_write(error, table="o.t")
    assert isinstance(found, NotWritable)
    assert text in str(found)
    assert full_disk(error, table="o.t") is None


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EACCES, NotWritable),
        (errno.EROFS, NotWritable),
    ],
)
def test_what_the_operating_system_says_itself(number, kind):
    """An error of the operating system is known by its number, also as the cause of another."""
    outer = RuntimeError("the write failed")
    outer.__cause__ = OSError(number, "any language")
    with pytest.raises(kind), writing_to("o.t"):
        raise outer


def test_other_errors_are_left_alone():
    """What is no refusal of the storage is raised as it came."""
    taken = SequenceTaken(writer="outbox/0/0", number=7)
    for error in (taken, ValueError("no")):
        with pytest.raises(type(error)) as caught, writing_to("o.t"):
            raise error
        assert caught.value is error
    assert refused_write(OSError(errno.ECONNRESET, "reset"), table="o.t") is None


def test_an_error_that_cannot_say_what_it_is():
    """An error whose text needs a Spark that is gone is raised as it came."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise AssertionError

    with pytest.raises(MuteError), writing_to("o.t"):
        raise MuteError
