"""The story of the demo, act by act.

It is a user of the outbox like any other: it writes a table and events, runs dbt and a relay, and
reads at the destination. Whatever is special to it is a setting in its home.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from delta_outbox.cli.logs import quieten_pyspark
from delta_outbox.cli.outcome import UnexpectedError
from delta_outbox.cli.progress import progress_on
from delta_outbox.cli.signals import stop_on_signals
from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.demo.flights import (
    EVENT_TYPES,
    TABLE,
    count_by_type,
    flight_events,
    load_flights,
    longest_delay,
)
from delta_outbox.demo.terminal import Terminal, next_commands
from delta_outbox.demo.verify import prove
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.interrupts import INTERRUPTED
from delta_outbox.runtime.settings_file import load_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.api import Outbox
    from delta_outbox.demo.kafka_server import KafkaServer
    from delta_outbox.relay import Summary

DONE: Final = 0
NOT_PROVEN: Final = 1

SETTINGS: Final = """\
# Written by the demo; everything is yours to change.

[publishers.default]
type = "jsonl"
"""

FEW_DAYS: Final = 30  # whose work is done before Java's optimising compiler pays off

Kind = Literal["jsonl", "kafka"]


class Stopped(OutboxError):
    """A signal ended the demo; what was delivered is recorded."""

    code: ClassVar[str] = "STOPPED"
    exit_code: ClassVar[int] = INTERRUPTED
    remedy = "Run the demo again: it goes on where it stopped."


@dataclass(frozen=True, kw_only=True)
class Demo:
    """One run.

    Args:
        kind: the publisher.
        home: of the outbox; it exists.
        days: how many days of flights.
        terminal: what a person sees.
        debug: show what Spark prints, on standard error.
        started: monotonic seconds, for the time in all.
    """

    kind: Kind
    home: Home
    days: int
    terminal: Terminal
    debug: bool = False
    started: float = field(default_factory=time.monotonic)

    def run(self) -> int:
        """Tell the whole story and return the exit code."""
        place = "a Kafka of its own" if self.kind == "kafka" else "JSON lines"
        self.terminal.headline(f"delta-outbox: a year of real flights, delivered to {place}.")
        with self._broker() as broker, self._outbox() as outbox:
            example = self._produce(outbox)
            self._refresh(outbox)
            self._deliver(outbox)
            self._build(outbox)
            with self.terminal.step("proof", "comparing flights and deliveries") as step:
                proof = prove(outbox.spark, self._delivered(outbox, broker))
                step.says = f"{TABLE} compared with what was delivered"
            against = f"Kafka at {broker.bootstrap}" if broker else _shown(self._folder(outbox))
        self.terminal.proof(proof, against=against, within="within a topic" if broker else "")
        self.terminal.where_to_look(
            next_commands(self.home, event_id=example), seconds=time.monotonic() - self.started
        )
        return DONE if proof.holds else NOT_PROVEN

    # --- the stage -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _broker(self) -> Iterator[KafkaServer | None]:
        if self.kind != "kafka":
            yield None
            return
        from delta_outbox.demo.kafka_home import PARTITIONS, local_kafka

        with contextlib.ExitStack() as stack:
            with self.terminal.step("kafka", "starting a broker on this machine") as step:
                server = stack.enter_context(local_kafka(self.home, EVENT_TYPES))
                step.says = (
                    f"{server.bootstrap}, {len(EVENT_TYPES)} topics of {PARTITIONS} partitions"
                )
            yield server

    @contextlib.contextmanager
    def _outbox(self) -> Iterator[Outbox]:
        from delta_outbox.api import open_outbox

        # The settings that the broker's address was written to, whatever OUTBOX_CONFIG says.
        config = self.home.settings if self.kind == "kafka" else None
        if config is None and load_settings(home=self.home.root).source is None:
            self.home.write_settings(SETTINGS)
        if not self.debug:
            quieten_pyspark()
        with contextlib.ExitStack() as stack:
            with self.terminal.step("outbox", "starting Spark, building with dbt") as step:
                outbox = stack.enter_context(
                    open_outbox(
                        home=self.home,
                        config=config,
                        create=True,
                        short_lived=self.days <= FEW_DAYS,
                        debug=self.debug,
                    )
                )
                self._check(outbox)
                step.says = f"{_shown(self.home.root)}: logs, projection and views, by dbt build"
            try:
                yield outbox
            except OutboxError:
                raise
            except Exception as error:
                # Spark's errors can be read only while Spark runs.
                raise UnexpectedError.of(error) from error

    def _check(self, outbox: Outbox) -> None:
        """Leave an outbox alone that is somebody's, and one that delivers elsewhere."""
        remedy = "Give the demo a home of its own: --home DIR."
        default = outbox.settings.publishers.get("default")
        type_ = None if default is None else default.type
        if type_ != self.kind:
            raise WrongUsage(
                f"demo: [publishers.default] of {self.home.root} must be of type {self.kind}. "
                f"Got: {type_}.",
                remedy=remedy,
            )
        has_events = bool(outbox.spark.table(outbox.tables.events).take(1))
        if has_events and not outbox.spark.catalog.tableExists(TABLE):
            raise WrongUsage(
                f"demo: must have an empty outbox or one of its own. Got: {self.home.root}, "
                "which holds events of somebody else.",
                remedy=remedy,
            )

    # --- the acts ------------------------------------------------------------------------------

    def _produce(self, outbox: Outbox) -> str:
        """Load the flights and append their events; return the id of one worth looking at."""
        spark = outbox.spark
        with self.terminal.step("flights", "loading the flights") as step:
            loaded = load_flights(spark, days=self.days, now=outbox.clock.now())
            step.says = (
                f"{loaded.flights:,} that left New York in 2013, {loaded.added:,} of them new"
            )
        with self.terminal.step("events", "making events of flights, appending them") as step:
            events = flight_events(spark, created_at=loaded.started_at).toArrow()
            report = outbox.append(events)
            report.raise_if_rejected()
            kinds = ", ".join(f"{n:,} {kind}" for kind, n in count_by_type(events).items())
            present = (
                f"{report.already_present:,} there already, " if report.already_present else ""
            )
            step.says = f"{present}{report.appended:,} appended: {kinds}"
        return longest_delay(spark)

    def _refresh(self, outbox: Outbox) -> None:
        with self.terminal.step("refresh", "refreshing the projection") as step:
            outbox.refresh()
            step.says = _counted(outbox)

    def _build(self, outbox: Outbox) -> None:
        from delta_outbox.runtime.dbt import BUILD, check_result, run_dbt

        with self.terminal.step("dbt build", "refreshing, checking the invariants") as step:
            check_result(run_dbt(BUILD, home=self.home, schema=outbox.tables.schema))
            step.says = f"{_counted(outbox)}, no invariant broken"

    def _deliver(self, outbox: Outbox) -> None:
        from delta_outbox.operations import inspection
        from delta_outbox.relay import Mode, Relay

        with self.terminal.step("relay", "", spinner=False) as step:
            with (
                stop_on_signals(sys.stderr) as stop,
                progress_on(
                    sys.stderr, expected=lambda: inspection.counts(outbox)["PENDING"]
                ) as report,
            ):
                summary = Relay(outbox).run(Mode.DRAIN, stop=stop, on_progress=report)
            step.says = _told(summary)
        if stop.is_set():
            raise Stopped("The demo was stopped before it could prove anything.")

    def _delivered(self, outbox: Outbox, broker: KafkaServer | None) -> DataFrame:
        from delta_outbox.demo.delivered import delivered_lines, delivered_messages

        if broker is None:
            return delivered_lines(outbox.spark, self._folder(outbox))
        scratch = self.home.scratch / "consumed"
        return delivered_messages(outbox.spark, broker.bootstrap, EVENT_TYPES, scratch=scratch)

    def _folder(self, outbox: Outbox) -> Path:
        """Return where the jsonl publisher writes."""
        from delta_outbox.publishers.jsonl import JsonlPublisher

        described = outbox.settings.publishers["default"]
        prepared = JsonlPublisher.prepare(described.settings, self.home.root)
        return Path(str(prepared["path"]))


def _counted(outbox: Outbox) -> str:
    from delta_outbox.operations import inspection

    return ", ".join(f"{n:,} {state}" for state, n in inspection.counts(outbox).items() if n)


def _told(summary: Summary) -> str:
    rate = summary.published / max(summary.duration_seconds, 0.001)
    told = f"{summary.published:,} published"
    for name in ("retried", "dead", "waiting"):
        count = getattr(summary, name)
        told += f", {count:,} {name}" if count else ""
    return f"{told}, {rate:,.0f}/s" if summary.published else told


def _shown(path: Path) -> str:
    """Return a path as short as it can be from here."""
    here = Path.cwd().resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
