"""Amazon SQS: one message per event, acknowledged per message.

Promises, and what they rest on:

- Delivered means that SQS named this very message among the successful ones of a request.
- A request is made once: the SDK's retries are off. A time-out after the connection was made is
  Unknown; nothing is begun after the deadline.
- Not `ordered`: within a request one message may fail while a later one succeeds, and requests run
  side by side; so the relay puts no two events of a key into a call, and order over calls is the
  relay's. In a FIFO queue the group is the key, and retries are recognised for five minutes.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from typing import ClassVar, Final

from botocore.exceptions import BotoCoreError, ClientError

from delta_outbox.lifecycle.results import Failed, NotSent, Rejected, Result
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.setting_reader import FilesInHome
from delta_outbox.publishers.sqs.call import SqsCall
from delta_outbox.publishers.sqs.client import SqsClients
from delta_outbox.publishers.sqs.errors import result_of_request
from delta_outbox.publishers.sqs.settings import SqsSettings, parse_settings

logger = logging.getLogger(__name__)

_QUEUE: Final = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")


class SqsPublisher(FilesInHome):
    """Publish to SQS through boto3."""

    ordered: ClassVar[bool] = False
    cloudevents: ClassVar[Transport] = Transport.UNBOUND

    def __init__(self) -> None:
        self._settings: SqsSettings | None = None
        self._clients: SqsClients | None = None
        self._urls: dict[str, str] = {}  # of queues that were there

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Raise one sentence about bad settings, without connecting.

        Args:
            settings: the table of the destination.

        Raises:
            ValueError: a setting is not allowed or has no meaning.
        """
        parsed = parse_settings(settings)
        try:
            region = SqsClients(parsed).region
        except BotoCoreError as error:
            raise ValueError(f"sqs: {error}") from None
        if region is None:
            raise ValueError(
                "sqs: `region` must be given where neither environment nor profile has one."
            )

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise if SQS does not answer, or does not know us.

        Args:
            settings: as for `open`.
            timeout: seconds to wait.

        Raises:
            ConnectionError: one sentence with the place and the cause.
        """
        parsed = parse_settings(settings)
        clients = SqsClients(parsed)
        try:
            client = clients.before(time.monotonic() + timeout)
            if client is None:
                raise ConnectionError(f"SQS {parsed.place}: no time to ask.")
            client.get_queue_url(QueueName="outbox-probe")
        except ClientError as error:
            if "NonExistentQueue" not in str(error.response.get("Error", {}).get("Code")):
                message = result_of_request(error)
                raise ConnectionError(f"SQS {parsed.place}: {_error_of(message)}.") from error
        except BotoCoreError as error:
            message = result_of_request(error)
            raise ConnectionError(f"SQS {parsed.place}: {_error_of(message)}.") from error
        finally:
            clients.close()

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; the connections are made by the first `publish`."""
        self._settings = parse_settings(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send every event once and wait for the answers, at most until the deadline."""
        settings = self._settings
        if settings is None:
            raise RuntimeError("SqsPublisher: `open` comes before `publish`.")
        if not events or events.remaining_seconds() <= 0:
            return [NotSent()] * len(events)
        if self._clients is None:
            self._clients = SqsClients(settings)
        queues: dict[str, str | Result] = {
            route: self._queue(self._clients, route, events.deadline)
            for route in sorted({event.route for event in events})
        }
        call = SqsCall(
            events,
            queues=queues,
            clients=self._clients,
            limit=settings.max_message_bytes,
            concurrency=settings.concurrency,
        )
        results = call.run()
        for event, result in zip(events, results, strict=True):
            if isinstance(result, Failed):
                self._urls.pop(event.route, None)  # it may be gone: ask again
        return results

    def close(self) -> None:
        """Close the connections; nothing is sent."""
        clients, self._clients = self._clients, None
        if clients is not None:
            clients.close()

    def _queue(self, clients: SqsClients, route: str, deadline: float) -> str | Result:
        """Return the URL of a queue, or the result of its events."""
        if route in self._urls:
            return self._urls[route]
        if not _QUEUE.fullmatch(route):
            return Rejected(error=f"the route {route!r} is no name for an SQS queue")
        assert self._settings is not None
        owner = self._settings.account_id
        client = clients.before(deadline)
        if client is None:
            return NotSent()
        try:
            if owner is None:
                answer = client.get_queue_url(QueueName=route)
            else:
                answer = client.get_queue_url(QueueName=route, QueueOwnerAWSAccountId=owner)
        except (BotoCoreError, ClientError) as error:
            message = result_of_request(error)
            logger.warning("sqs_queue_not_found", extra={"queue": route})
            # Only a question was asked: the event itself was certainly not delivered.
            return Failed(error=f"the queue {route!r}: {_error_of(message)}")
        self._urls[route] = answer["QueueUrl"]
        return self._urls[route]


def _error_of(result: Result) -> str:
    return str(getattr(result, "error", None) or "no reason")
