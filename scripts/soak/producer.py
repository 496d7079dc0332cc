"""A producer beside the relays: it keeps events waiting, through the server, with plain SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.errors import PySparkException
from scripts.soak.folder import Folder

from delta_outbox.core.errors import OutboxError
from delta_outbox.runtime.session import remote_session

TOPIC = "order.changed"  # also the event type: the route is empty
KEYS = 500
AT_ONCE = 500  # events of an append
ENOUGH = 2000  # waiting events
LEASE = 10  # seconds; twice what a cold JVM on a busy machine needs to publish

POLICY = (
    "insert into outbox.policy_rows (position, event_type, event_type_regex, destination, "
    "route, format, ordering, order_scope, on_dead, lease_seconds) "
    f"select -1, '{TOPIC}', '^{TOPIC}$', 'default', '{{event_type}}', 'raw', 'strict', 'key', "
    f"'continue', '{LEASE}' "
    "where not exists (select * from outbox.policy_rows where position = -1)"
)


def event_id(number: int) -> str:
    """Return the id of an event.

    Args:
        number: the event.
    """
    return f"event-{number:08d}"


def insert(first: int, count: int) -> str:
    """Return the insert of events whose numbers follow on each other.

    Args:
        first: the first number.
        count: how many.
    """
    return (
        "insert into outbox.outbox_events (event_id, event_type, payload, ordering_key, ordinal) "
        f"select concat('event-', lpad(id, 8, '0')), '{TOPIC}', cast(cast(id as string) as binary),"
        f" concat('key-', id % {KEYS}), id from range({first}, {first + count})"
    )


class Producer:
    """Appends whenever too little waits, until its server ends or it is told to stop.

    What was begun and what was acknowledged is written down; an append that fails is not repeated,
    so its events are there or not, and the log says which.

    Args:
        url: of the server.
        folder: of the soak.
        waiting: counts the events that are open.
    """

    def __init__(self, url: str, folder: Folder, waiting: Callable[[], int]) -> None:
        self._url = url
        self._folder = folder
        self._waiting = waiting
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def start(self) -> None:
        """Begin to append."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the append at hand, and end."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            spark = remote_session(self._url)
            while not self._stop.is_set():
                if self._waiting() >= ENOUGH:
                    self._stop.wait(0.2)
                    continue
                first = self._folder.next_number()
                self._folder.note_append(first, AT_ONCE, done=False)
                spark.sql(insert(first, AT_ONCE))
                self._folder.note_append(first, AT_ONCE, done=True)
        except (PySparkException, OutboxError):
            return  # the server was killed; the next one gets a producer of its own
