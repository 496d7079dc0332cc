"""Publishes one claim: reads or joins payloads, sends slices to workers, collects answers."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import mask_of
from delta_outbox.core.failpoints import reach
from delta_outbox.core.redaction import describe
from delta_outbox.core.tables import Tables
from delta_outbox.delta.storage_errors import refused_write
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.endings import Crashed, EndOfClaim
from delta_outbox.lifecycle.results import Failed, NotSent, Rejected, Unknown
from delta_outbox.lifecycle.results_by_column import RECEIPT_COLUMNS, Results
from delta_outbox.publishers.cloudevents.conversion import CloudEventFormat
from delta_outbox.relay.publish import slice as worker
from delta_outbox.relay.publish.contents import is_readable, written_slices
from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.event_places import rows_of_events
from delta_outbox.relay.publish.producer_slots import ProducerSlots
from delta_outbox.relay.publish.publisher_modules import folders_of
from delta_outbox.relay.publish.routing import route_claim, sendable
from delta_outbox.relay.publish.workers import Workers
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_TASK_MIB: Final = 512  # of the heap, for a task that reads payloads
_ROOM: Final = 2**20  # bytes that there must be room for before a claim is tried again
MARGIN: Final = 5.0  # seconds of a lease that are kept for the way back
MARGIN_SHARE: Final = 0.2  # of a short lease, where MARGIN would leave nothing
_UNANSWERED: Final = Crashed(error="no answer from the worker")


def publish_seconds(lease_seconds: float) -> float:
    """Return how long a claim may publish: a lease holds it twice, and a margin.

    The other half is for what is not sending: workers that start late, an ending that is resolved
    and appended behind others.

    Args:
        lease_seconds: of the claim.
    """
    return (lease_seconds - margin_seconds(lease_seconds)) / 2


def margin_seconds(lease_seconds: float) -> float:
    """Return what is kept of a lease for the way back.

    Args:
        lease_seconds: of the claim.
    """
    return min(MARGIN, MARGIN_SHARE * lease_seconds)


class NotBegun(Exception):
    """Something is wrong with this machine, and no worker had begun to send."""


class Publishing:
    """Publishes claims of one outbox.

    Args:
        spark: the session.
        tables: the names of the relations.
        statements: the compiled SQL.
        destinations: as `add` takes them; none yet if left out.
        payload_formats: likewise.
        parallelism: slices per claim.
        tracing: whether publish attempts become spans; only then `metadata` is read.
        slots: of the relay; its own if left out.
        workers: of the relay; its own if left out, which it does not start beforehand.
        folder: for what is written down for the workers of this machine while they publish; that
            of temporary files if left out.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        statements: Statements,
        *,
        destinations: Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
        payload_formats: Mapping[str, CloudEventFormat] | None = None,
        parallelism: int,
        tracing: bool = False,
        slots: ProducerSlots | None = None,
        workers: Workers | None = None,
        folder: Path | None = None,
    ) -> None:
        self._slots = slots or ProducerSlots(uuid.uuid4().hex)
        self._workers = workers or Workers(spark, parallelism=parallelism, folder=folder)
        self._spark = spark
        self._tables = tables
        self._statements = statements
        self.destinations: Mapping[str, tuple[str, Mapping[str, object]]] = {}
        self._payload_formats: Mapping[str, CloudEventFormat] = {}
        self.add(destinations or {}, payload_formats or {})
        self._parallelism = parallelism
        self._tracing = tracing
        self._folder = folder
        self._reads_files = True
        self.not_opened: dict[str, str] = {}
        self.obstacle: str | None = None
        """Why this machine could not even begin to publish the last claim; None if it could."""
        self.not_begun = 0
        """How many claims in a row it could not begin to publish."""

    def add(
        self,
        destinations: Mapping[str, tuple[str, Mapping[str, object]]],
        payload_formats: Mapping[str, CloudEventFormat],
    ) -> None:
        """Publish to some destinations as well from now on. Those of former policies stay: a
        delivery keeps the destination of its first claim.

        Args:
            destinations: name to (publisher type, prepared settings).
            payload_formats: name to the format of CloudEvents, for destinations that have one.
        """
        self._payload_formats = {**self._payload_formats, **payload_formats}
        self.destinations = {**self.destinations, **destinations}
        self._folders = folders_of(type_ for type_, _ in self.destinations.values())

    def has_room(self) -> bool:
        """Say whether there is room where something is written down for the workers."""
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                file.write(bytes(_ROOM))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.obstacle = describe(error)
            return False
        return True

    def publish(
        self,
        claim: Claim,
        *,
        seconds: float | None = None,
        slices: int = 0,
    ) -> Results[EndOfClaim]:
        """Publish every delivery of a claim once and return what became of each.

        Whatever goes wrong, each delivery has an answer: where the worker gave none, it crashed.
        Where this machine could not begin, `obstacle` says why, and nothing was sent.

        Args:
            claim: read back from the log, so it is ours.
            seconds: left of its lease, less the margin; from the claim on if left out.
            slices: in how many it is published; 0 for as many as are published at once.
        """
        unsent: dict[int, EndOfClaim] = {}
        slices = slices or self._parallelism
        routed, unroutable, behind = sendable(route_claim(claim, slices=slices))
        for position in unroutable:
            unsent[position] = Rejected(error="the route names a value that the event lacks")
        for later in behind:
            unsent[later] = NotSent()
        budget = publish_seconds(claim.lease_seconds)
        budget = budget if seconds is None else min(budget, seconds)
        job = worker.Job(
            claim_id=claim.claim_id,
            destinations=self.destinations,
            payload_formats=self._payload_formats,
            deadline=Deadline.after(budget),
            budget=budget,
            folders=self._folders,
            tracing=self._tracing,
        )
        reach("publish.before")
        try:
            if not routed.num_rows:
                answers = worker.RESULTS.empty_table()
            else:
                answers = self._answers(job, claim, routed, slices)
        except NotBegun as error:
            self.obstacle = str(error)
            self.not_begun += 1
            logger.warning(
                "publish_not_begun",
                extra={"claim_id": claim.claim_id, "size": len(claim), "error": self.obstacle},
            )
            nothing = dict.fromkeys(range(len(claim)), NotSent())
            return results_of(worker.RESULTS.empty_table(), claim, {**nothing, **unsent})
        except Exception as error:  # noqa: BLE001 - whatever it was, every delivery gets an ending
            self.obstacle, self.not_begun = None, 0
            logger.warning(
                "publish_job_failed",
                extra={"claim_id": claim.claim_id, "size": len(claim), "error": describe(error)},
            )
            return results_of(worker.RESULTS.empty_table(), claim, unsent)
        self.obstacle, self.not_begun = None, 0
        reach("publish.after")
        results = results_of(answers, claim, unsent)
        self._note_not_opened(answers, claim)
        self._note_not_read(answers)
        not_sent = sum(isinstance(result, NotSent) for result in results.others.values())
        if not_sent and job.deadline.seconds_left() <= 0:
            logger.warning(
                "publish_deadline_passed",
                extra={
                    "claim_id": claim.claim_id,
                    "size": len(claim),
                    "unsent": not_sent,
                    "publish_seconds": round(budget, 3),
                    "remedy": "the next claims hold less; if it comes again, a longer "
                    "lease_seconds in the policy",
                },
            )
        return results

    def _answers(self, job: worker.Job, claim: Claim, routed: pa.Table, slices: int) -> pa.Table:
        """Let the workers publish.

        Raises:
            NotBegun: something is wrong with this machine, and nothing was sent.
        """
        with contextlib.ExitStack() as prepared:
            try:
                sign = prepared.enter_context(self._workers.unbegun())
                path = None
                if self._reads_files and is_readable(claim.deliveries):
                    path = prepared.enter_context(
                        written_slices(routed, claim.deliveries, slices=slices, folder=self._folder)
                    )
            except Exception as error:
                raise NotBegun(describe(error)) from error
            job = replace(job, unbegun=None if sign is None else str(sign))
            try:
                if path is not None:
                    return self._run_by_files(job, path, slices)
                return self._run(job, claim, routed, slices)
            except Exception as error:
                refused = refused_write(error, table=self._tables.events)
                if refused is None or sign is None or not sign.exists():
                    raise
                raise NotBegun(str(refused)) from error

    @functools.cached_property
    def _tasks(self) -> int:
        """Return how many tasks of a local Spark may read payloads at once; 0 if that is for others
        to know. Each holds a row group of 128 MB, and pages of it unpacked.
        """
        heap = re.fullmatch(r"(\d+)([mg])", self._spark.conf.get("spark.driver.memory", "") or "")
        master = self._spark.conf.get("spark.master", "") or ""
        if heap is None or not master.startswith("local"):
            return 0
        mib = int(heap[1]) * (1024 if heap[2] == "g" else 1)
        return max(1, mib // _TASK_MIB)

    def _run(self, job: worker.Job, claim: Claim, routed: pa.Table, slices: int) -> pa.Table:
        from pyspark.sql import functions as sf

        traced = ("metadata",) if self._tracing else ()
        batch = sf.broadcast(self._spark.createDataFrame(routed))
        content = self._spark.sql(
            "select event_id, event_type, ordering_key, partition_key, created_at, available_at, "
            f"appended_at, ordinal, payload, {', '.join(('headers', *traced))}, "
            "_metadata.row_commit_version as arrival "
            f"from {self._tables.events} where {rows_of_events(claim.deliveries)}"
        )
        if self._tasks:
            content = content.coalesce(self._tasks)
        rows = content.join(
            batch,
            (content["event_id"] == batch["id"]) & (content["arrival"] == batch["at_arrival"]),
        )
        order = ["position"]
        if pc.any(claim.deliveries["ambiguous"]).as_py():
            # Several rows of one id in one commit: the first of them, content last, is the event.
            text = self._statements.fill("order_of_contents", content="_c").replace("_c.", "")
            rows = rows.selectExpr(
                "*", f"row_number() over (partition by position order by {text}) as copy"
            ).where("copy = 1")
        rows = (
            rows.repartitionById(slices, "slice")
            .sortWithinPartitions(*order)
            .select(
                "position",
                "destination",
                "scope",
                "event_id",
                "event_type",
                "key",
                "ordering_key",
                "partition_key",
                "headers",
                "payload",
                "created_at",
                "available_at",
                "appended_at",
                "attempt",
                "lifecycle",
                "route",
                "format",
                *traced,
            )
        )

        with self._slots.taken() as slot:
            return self._send(replace(job, producer_slot=slot), rows)

    def _run_by_files(self, job: worker.Job, path: str, slices: int) -> pa.Table:
        """Let each worker read what it sends from the files of the log."""
        with self._slots.taken() as slot:
            sending = replace(job, producer_slot=slot)

            def publish(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for _ in given:  # a worker that leaves something of its input unread is not reused
                    pass
                number, part = worker.task_numbers()
                for answers in worker.publish_from_files(
                    sending, path, attempt_number=number, part=part
                ):
                    packed = answers.serialize().to_pybytes()
                    yield pa.RecordBatch.from_pydict({"answers": [packed]})

            # One action, as in `_send`.
            found = (
                self._spark.range(slices, numPartitions=slices)
                .mapInArrow(publish, "answers binary")
                .toArrow()
            )
        answers = [
            pa.ipc.read_record_batch(packed.as_buffer(), worker.RESULTS)
            for packed in found["answers"]
        ]
        return pa.Table.from_batches(answers, worker.RESULTS)

    def _send(self, job: worker.Job, rows: DataFrame) -> pa.Table:
        def publish(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            number, part = worker.task_numbers()
            return worker.publish_slice(job, batches, attempt_number=number, part=part)

        # One action, its answers collected and never cached: a second one would publish again.
        return rows.mapInArrow(publish, worker.RESULTS_DDL).toArrow()

    def _note_not_read(self, answers: pa.Table) -> None:
        """Ask Spark from now on, if a worker could not read a file itself."""
        there = answers.filter(pc.equal(answers["code"], worker.NOT_READ))
        if there.num_rows and self._reads_files:
            self._reads_files = False
            logger.warning("files_unreadable", extra={"error": there["error"][0].as_py()})

    def _note_not_opened(self, answers: pa.Table, claim: Claim) -> None:
        there = answers.filter(pc.equal(answers["code"], worker.NOT_OPENED))
        for at, error in zip(
            there["position"].to_pylist(), there["error"].to_pylist(), strict=True
        ):
            self.not_opened.setdefault(claim.deliveries["destination"][at].as_py(), error)


def results_of(
    answers: pa.Table, claim: Claim, unsent: Mapping[int, EndOfClaim]
) -> Results[EndOfClaim]:
    """Return what became of each delivery of a claim; of what has no answer, that it crashed.

    Args:
        answers: columns of `slice.RESULTS`, in any order.
        claim: what was published.
        unsent: results by position of what was not given to the workers.
    """
    size = len(claim)
    delivered = mask_of(pc.equal(answers["code"], worker.DELIVERED))
    positions = answers["position"].to_numpy()
    row = np.full(size, -1)  # of each delivery, the answer that says that it was delivered
    row[positions[delivered]] = np.flatnonzero(delivered)
    others: dict[int, EndOfClaim] = dict.fromkeys(np.flatnonzero(row < 0).tolist(), _UNANSWERED)
    others.update(unsent)
    told = answers.filter(pa.array(~delivered)).select(["position", "code", "error", "retry_after"])
    for at, code, error, retry_after in zip(*told.to_pydict().values(), strict=True):
        others[at] = _result(code, error, retry_after)
    row[list(others)] = -1
    rows = pa.array(row, mask=row < 0)
    receipts = {name: answers[name].combine_chunks().take(rows) for name in RECEIPT_COLUMNS}
    return Results(size, dict(sorted(others.items())), receipts)


def _result(code: str, error: str, retry_after: float | None) -> EndOfClaim:
    match code:
        case worker.FAILED:
            return Failed(error=error, retry_after=retry_after)
        case worker.REJECTED:
            return Rejected(error=error)
        case worker.UNKNOWN:
            return Unknown(error=error)
        case worker.NOT_SENT | worker.NOT_OPENED | worker.NOT_READ:
            return NotSent()
        case _:
            return Crashed(error=error or "crashed")
