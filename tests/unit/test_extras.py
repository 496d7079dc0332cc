"""Libraries of the publishers that may be missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WITHOUT = """
import sys
sys.modules[{library!r}] = None
from delta_outbox.publishers.registry import PublisherNotLoaded, find_publisher
try:
    find_publisher({type_!r}, destination="d")
except PublisherNotLoaded as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("type_", "library"), [("rabbitmq", "pika"), ("sqs", "boto3"), ("sqs", "botocore")]
)
def test_a_missing_library_names_its_extra(type_, library):
    """Where a publisher's library is missing, the error says which extra to install."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(type_=type_, library=library)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"pip install 'delta-outbox[{type_}]'" in done.stdout
