"""A relay whose own machine has no room to write down what its workers are to send."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.disk import SmallDisk
from tests.integration.outboxes import Store, check_lives, events

from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.home import Home


class _Mending(logging.Handler):
    """Make room as soon as a relay says that it pauses, and note what it says."""

    def __init__(self, disk: SmallDisk) -> None:
        super().__init__(logging.INFO)
        self.disk = disk
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.msg)
        if record.msg == "publishing_paused":
            self.disk.mend()


@pytest.mark.local
def test_a_full_disk_costs_no_event_anything(shared_store: Store, tmp_path: Path) -> None:
    """An event alone in its claim waits while the disk of the machine is full; the relay says so,
    and delivers it as soon as there is room, without an attempt or a crash on its account.
    """
    machine = Home(root=tmp_path / "machine")
    machine.relays.mkdir(parents=True)
    disk = SmallDisk(machine.scratch)
    relay_log = logging.getLogger("delta_outbox.relay")
    mending, level = _Mending(disk), relay_log.level
    relay_log.addHandler(mending)
    relay_log.setLevel(logging.INFO)
    try:
        disk.fill()
        outbox = replace(shared_store, home=machine).outbox(tmp_path / "d", location="elsewhere")
        outbox.append(events("alone", 1)).raise_if_rejected()
        summary = Relay(outbox).run(Mode.DRAIN)
    finally:
        relay_log.removeHandler(mending)
        relay_log.setLevel(level)
        disk.close()
    assert (1, 0, 0) == (summary.published, summary.dead, summary.waiting)
    rows = shared_store.transitions("alone")
    check_lives(rows)
    assert ["claimed", "released", "claimed", "delivered"] == [row["reason"] for row in rows]
    assert {(0, 0)} == {(row["crashes"], row["publish_attempts"]) for row in rows}
    assert mending.said.index("publishing_paused") < mending.said.index("publishing_resumed")
