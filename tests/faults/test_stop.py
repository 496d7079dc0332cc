"""What a relay leaves behind that was asked to stop."""

from __future__ import annotations

import signal

import pytest


@pytest.mark.parametrize(("mode", "expected"), [("--drain", 1), ("--continuous", 0)])
def test_stopped_relay_leaves_nothing_open(
    started, to_kafka, topic, all_numbers, mode: str, expected: int
) -> None:
    """After SIGTERM nothing is claimed, and the broker and the log name the same events, each
    once; what waits is a finding for a drain and none for a relay that runs until it is stopped.
    """
    relay = started(mode)
    relay.send_signal(signal.SIGTERM)
    code, summary = to_kafka.end(relay)

    histories = to_kafka.histories()
    states = {number: rows[-1]["to_state"] for number, rows in histories.items()}
    published = {number for number, state in states.items() if state == "PUBLISHED"}
    assert "CLAIMED" not in states.values()
    assert sorted(published) == sorted(topic.numbers())
    assert 0 < len(published) < len(all_numbers)
    assert expected == code
    assert len(published) == summary["published"]
    assert len(all_numbers) - len(published) == summary["waiting"]
