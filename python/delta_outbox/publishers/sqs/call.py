"""One publish call of the SQS publisher: batches of ten, several requests at the same time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

from delta_outbox.core.redaction import describe
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.publishers.echo import without_echo
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.sqs.client import SqsClients
from delta_outbox.publishers.sqs.errors import is_of_a_message, result_of_entry, result_of_request
from delta_outbox.publishers.sqs.message import SqsMessage, message_of

MAX_ENTRIES: Final = 10  # of a request
_NOT_SENT: Final = NotSent()
_UNANSWERED: Final = Unknown(error="SQS did not answer before the deadline")

_Batch = Sequence[tuple[int, SqsMessage]]


class SqsCall:
    """Sends a batch and collects one result per event.

    Args:
        events: the batch.
        queues: URL, or the result of its events, for every route.
        clients: to send with.
        limit: bytes of a message and of a request.
        concurrency: requests under way at the same time.
    """

    def __init__(
        self,
        events: EventBatch,
        *,
        queues: Mapping[str, str | Result],
        clients: SqsClients,
        limit: int,
        concurrency: int,
    ) -> None:
        self._events = events
        self._queues = queues
        self._clients = clients
        self._limit = limit
        self._concurrency = concurrency
        self._results: list[Result] = [_NOT_SENT] * len(events)

    def run(self) -> list[Result]:
        """Send everything that can be sent, and wait until the deadline at most."""
        executor = ThreadPoolExecutor(self._concurrency, thread_name_prefix="outbox-sqs")
        try:
            under_way: dict[Future[dict[int, Result]], _Batch] = {
                executor.submit(self._send, url, batch): batch for url, batch in self._batches()
            }
            done, late = wait(under_way, timeout=self._events.remaining_seconds())
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
        for future in done:
            error = future.exception()
            if error is not None:  # an answer that nobody can read
                lost = Unknown(error=describe(error))
                self._results_of({position: lost for position, _ in under_way[future]})
            else:
                self._results_of(future.result())
        for future in late:
            # What was not begun is cancelled; what was begun may have been sent.
            answer = _NOT_SENT if future.cancelled() else _UNANSWERED
            for position, _ in under_way[future]:
                self._results[position] = answer
        return self._results

    def _results_of(self, found: Mapping[int, Result]) -> None:
        for position, result in found.items():
            if isinstance(result, Failed | Rejected) or (
                isinstance(result, Unknown) and result.error is not None
            ):
                cause = without_echo(result.error or "", self._events[position])
                result = replace(result, error=cause)
            self._results[position] = result

    def _batches(self) -> Iterator[tuple[str, _Batch]]:
        """Yield the requests: of one queue, at most ten messages and so many bytes each."""
        open_batches: dict[str, list[tuple[int, SqsMessage]]] = defaultdict(list)
        sizes: dict[str, int] = defaultdict(int)
        for position, event in enumerate(self._events):
            queue = self._queues[event.route]
            if not isinstance(queue, str):
                self._results[position] = queue
                continue
            try:
                message = message_of(event)
            except UnicodeEncodeError:
                self._results[position] = Rejected(error="a text of it has no form in UTF-8")
                continue
            if message.size > self._limit:
                self._results[position] = Rejected(
                    error=f"the message is too large: {message.size} bytes with its attributes, "
                    f"and max_message_bytes is {self._limit}"
                )
                continue
            batch = open_batches[queue]
            if len(batch) == MAX_ENTRIES or sizes[queue] + message.size > self._limit:
                yield queue, batch
                batch = open_batches[queue] = []
                sizes[queue] = 0
            batch.append((position, message))
            sizes[queue] += message.size
        for queue, batch in open_batches.items():
            if batch:
                yield queue, batch

    def _send(self, url: str, batch: _Batch) -> dict[int, Result]:
        """Send one request; if it is refused because of one message, each alone."""
        client = self._clients.before(self._events.deadline)
        if client is None or time.monotonic() >= self._events.deadline:
            return {position: _NOT_SENT for position, _ in batch}
        entries = [message.entry(number) for number, (_, message) in enumerate(batch)]
        try:
            answer = client.send_message_batch(QueueUrl=url, Entries=entries)
        except Exception as error:  # noqa: BLE001 - the SDK's many, each has a meaning
            if len(batch) > 1 and is_of_a_message(error):
                # SQS has taken none of them, and does not say which one is to blame.
                alone = [self._send(url, [one]) for one in batch]
                return {position: result for one in alone for position, result in one.items()}
            result = result_of_request(error)
            return {position: result for position, _ in batch}
        results: dict[int, Result] = {
            position: Unknown(error="SQS did not name it in its answer") for position, _ in batch
        }
        for taken in answer.get("Successful", []):
            receipt = {"message_id": taken["MessageId"]}
            if "SequenceNumber" in taken:
                receipt["sequence_number"] = taken["SequenceNumber"]
            results[batch[int(taken["Id"])][0]] = Delivered(receipt=receipt)
        for failed in answer.get("Failed", []):
            results[batch[int(failed["Id"])][0]] = result_of_entry(
                failed["Code"], failed.get("Message", ""), sender_fault=failed["SenderFault"]
            )
        return results
