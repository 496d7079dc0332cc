"""The same session fixtures, through a server of the run's home.

A process holds one kind of session: run this folder in a pytest process of its own. The server
is a process of its own too, as `outbox serve` is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import pytest

from delta_outbox.home import Home
from delta_outbox.served import REMOTE_VARIABLE, find_served

START_LIMIT = 180.0  # seconds; a cold JVM on a busy machine
END_LIMIT = 60.0  # seconds

# Short-lived, unlike the command's: the compiler would take half of the processor.
SERVE = """
import sys
from pathlib import Path
from delta_outbox.home import Home
from delta_outbox.serving import serving
with serving(Home(root=Path(sys.argv[1])), short_lived=True):
    sys.stdin.read()
"""


@pytest.fixture(scope="session")
def remote_url(home: Home, plain_environment: Mapping[str, str]) -> Iterator[str]:
    """Serve the run's home and return the address, with its token."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(home.root)], env=plain_environment, stdin=subprocess.PIPE
    ) as server:
        try:
            started = time.monotonic()
            while (served := find_served(home)) is None:
                assert server.poll() is None, "the server ended"
                assert time.monotonic() - started < START_LIMIT, "the server does not answer"
                time.sleep(0.1)
            # In the environment as well: dbt opens its session by itself.
            os.environ[REMOTE_VARIABLE] = served.url
            yield served.url
        finally:
            os.environ.pop(REMOTE_VARIABLE, None)
            assert server.stdin is not None
            server.stdin.close()  # it ends when nobody listens any more
            server.wait(timeout=END_LIMIT)
