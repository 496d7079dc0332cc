"""The same session fixtures, through a server of the run's home.

A process holds one kind of session: run this folder in a pytest process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from tests.integration.serving import served

from delta_outbox.runtime.home import Home


@pytest.fixture(scope="session")
def remote_url(home: Home, plain_environment: Mapping[str, str]) -> Iterator[str]:
    """Serve the run's home and return the address."""
    with served(home, plain_environment) as url:
        yield url
