"""A server of the run's home, as `outbox serve` is: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import REMOTE_VARIABLE, find_served

START_LIMIT = 180.0  # seconds; a cold JVM on a busy machine
END_LIMIT = 60.0  # seconds

# Short-lived, unlike the command's: the compiler would take half of the processor.
SERVE = """
import sys
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.server import serving
with serving(Home(root=Path(sys.argv[1])), short_lived=True):
    sys.stdin.read()
"""


@contextmanager
def served(home: Home, environment: Mapping[str, str]) -> Iterator[str]:
    """Serve a home and return the address, with its token; it is in our environment as well.

    Args:
        home: the home.
        environment: of the server.
    """
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(home.root)], env=environment, stdin=subprocess.PIPE
    ) as server:
        try:
            started = time.monotonic()
            while (found := find_served(home)) is None:
                assert server.poll() is None, "the server ended"
                assert time.monotonic() - started < START_LIMIT, "the server does not answer"
                time.sleep(0.1)
            # In the environment as well: dbt opens its session by itself.
            os.environ[REMOTE_VARIABLE] = found.url
            yield found.url
        finally:
            os.environ.pop(REMOTE_VARIABLE, None)
            assert server.stdin is not None
            server.stdin.close()  # it ends when nobody listens any more
            server.wait(timeout=END_LIMIT)
