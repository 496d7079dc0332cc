"""A home whose default destination is the local Kafka of the demo."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from delta_outbox.core.errors import BadSettings
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.runtime.home import Home

PARTITIONS: Final = 4

_ADDRESS: Final = re.compile(r'^("bootstrap\.servers"\s*=\s*)"[^"\n]*"', re.MULTILINE)
_SETTINGS: Final = """\
# Written by the demo. Its Kafka gets a free port at every start, so the demo sets the address
# below each time; everything else is yours to change.

[publishers.default]
type = "kafka"
"bootstrap.servers" = ""
topics = ["flight.*"]
"""


@contextlib.contextmanager
def local_kafka(home: Home, topics: Sequence[str]) -> Iterator[KafkaServer]:
    """Run the Kafka of a home for a block: its data stay in the home, its address in the settings.

    Args:
        home: of the outbox; it exists.
        topics: created if they are missing, with four partitions each.

    Raises:
        HomeInUse: another process works in this home.
        BadSettings: the settings of the home have no address to set.
    """
    # Before the broker starts: two brokers on the same data would only confuse.
    home.lock.acquire()
    with KafkaServer(home.root / "kafka") as server:
        for topic in topics:
            server.create_topic(topic, PARTITIONS)
        home.write_settings(with_address(_text(home), server.bootstrap, where=str(home.settings)))
        yield server


def _text(home: Home) -> str:
    if not home.settings.exists():
        return _SETTINGS
    return home.settings.read_text(encoding="utf-8")


def with_address(settings: str, bootstrap: str, *, where: str) -> str:
    """Return a settings file with another broker address in it.

    Args:
        settings: the text of the file.
        bootstrap: the address.
        where: the name of the file, for the message.

    Raises:
        BadSettings: there is no such line.
    """
    text, found = _ADDRESS.subn(lambda match: f'{match[1]}"{bootstrap}"', settings, count=1)
    if not found:
        raise BadSettings(
            f'{where}: must have a line `"bootstrap.servers" = "..."` for the demo\'s own Kafka.',
            remedy="Add the line, or give the demo a home of its own with --home.",
        )
    return text
