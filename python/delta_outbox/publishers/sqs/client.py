"""Clients of SQS without retries, whose time-outs end before a deadline."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from delta_outbox.publishers.sqs.settings import SqsSettings

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_LONGEST: Final = 32.0  # seconds for connection and answer together
_SHORTEST: Final = 0.1
_STEP: Final = 0.75  # from one span to the next shorter one
_TO_CONNECT: Final = 0.25  # of a span; the rest is for the answer


class SqsClients:
    """One client per span of time: the SDK fixes time-outs when a client is made.

    Args:
        settings: of the destination.
    """

    def __init__(self, settings: SqsSettings) -> None:
        self._settings = settings
        self._session = boto3.session.Session(
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            region_name=settings.region,
            profile_name=settings.profile,
        )
        self._clients: dict[float, SQSClient] = {}
        self._lock = threading.Lock()  # a session makes one client at a time

    @property
    def region(self) -> str | None:
        """Return the region of the settings or of the SDK's own search."""
        return self._session.region_name

    def before(self, deadline: float) -> SQSClient | None:
        """Return a client whose connection and answer come before a deadline; None: too late.

        A part of the time is for the connection, so that it is not made when all time is over.

        Args:
            deadline: monotonic seconds.
        """
        left = deadline - time.monotonic()
        if left < _SHORTEST:
            return None
        span = _LONGEST
        while span > left:
            span *= _STEP
        with self._lock:
            client = self._clients.get(span)
            if client is None:
                client = self._clients[span] = self._made(span)
            return client

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _made(self, span: float) -> SQSClient:
        settings = self._settings
        # An endpoint of the environment would escape the demand for https.
        unstubbed: dict[str, Any] = {"ignore_configured_endpoint_urls": True}
        config = Config(
            connect_timeout=span * _TO_CONNECT,
            read_timeout=span * (1 - _TO_CONNECT),
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=settings.concurrency,
            user_agent_extra="delta-outbox",
            **unstubbed,
        )
        more: dict[str, Any] = {}
        if settings.ca_file is not None:
            more["verify"] = settings.ca_file
        return self._session.client(
            "sqs", endpoint_url=settings.endpoint_url, config=config, **more
        )
