"""A home that is copied, moved, backed up and restored: whatever it holds goes with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from delta_outbox.runtime.home import Home

pytestmark = [pytest.mark.local, pytest.mark.rest]

LIMIT = 900.0  # seconds; a command is a JVM, and the machine may be busy

# One process, one session: what a user does with several commands, in as few JVMs as tell it.
WORK = """
import json
import sys
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.api import open_outbox

root, what = Path(sys.argv[1]), sys.argv[2:]
home = Home(root=root).create() if "init" in what else Home(root=root)
with open_outbox(home=home, create="init" in what, short_lived=True) as outbox:
    spark, events = outbox.spark, outbox.tables.events
    for word in what:
        kind, _, value = word.partition("=")
        if kind == "append":
            spark.sql(
                f"insert into {events} (event_id, event_type, payload) "
                f"values ('{value}', 'order.created', X'7B7D')"
            )
        elif kind == "table":
            spark.sql("create schema if not exists own")
            spark.sql("create table own.plain using parquet as select 1 as id")
            spark.sql("create view own.seen as select id from own.plain")
        elif kind == "insert":
            spark.sql(f"insert into own.plain values ({value})")
    outbox.refresh()
    print(json.dumps({
        "events": sorted(r[0] for r in spark.sql(f"select event_id from {events}").collect()),
        "shown": sorted(
            r[0] for r in spark.sql(f"select event_id from {outbox.tables['outbox']}").collect()
        ),
        "own": sorted(r[0] for r in spark.sql("select id from own.seen").collect()),
        "files": sorted({r[0] for r in spark.sql(
            f"select _metadata.file_path from {events}").collect()}),
    }))
"""


def work(environment: dict[str, str], home: Path, what: Iterable[str]) -> dict[str, list[object]]:
    """Do something in a home in a process of its own and return what it holds then."""
    ended = subprocess.run(
        [sys.executable, "-c", WORK, str(home), *what],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert 0 == ended.returncode, ended.stderr[-3000:]
    found: dict[str, list[object]] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_a_copied_and_a_moved_home_are_outboxes_of_their_own(
    tmp_path: Path, plain_environment: dict[str, str]
):
    """A copy holds what the original held and writes into itself alone, also while the original's
    lock is held; a home that was moved, and moved back, goes on as if nothing had happened.
    """
    first, copy, moved = tmp_path / "my home", tmp_path / "my home 2", tmp_path / "a" / "höme"
    moved.parent.mkdir()
    made = work(plain_environment, first, ["init", "append=a", "table"])
    assert (["a"], ["a"], [1]) == (made["events"], made["shown"], made["own"])
    shutil.copytree(first, copy, symlinks=True)
    with Home(root=first).locked():
        copied = work(plain_environment, copy, ["append=b", "insert=2"])
    assert (["a", "b"], ["a", "b"], [1, 2]) == (copied["events"], copied["shown"], copied["own"])
    assert all("my%20home%202/" in str(file) for file in copied["files"]), copied["files"]
    first.rename(moved)
    there = work(plain_environment, moved, ["append=c"])
    assert (["a", "c"], ["a", "c"], [1]) == (there["events"], there["shown"], there["own"])
    moved.rename(first)
    back = work(plain_environment, first, ["append=d"])
    assert (["a", "c", "d"], ["a", "c", "d"], [1]) == (back["events"], back["shown"], back["own"])
