"""Many orders for real: through an outbox, third parties that misbehave, and people.

It starts a Spark, third parties, a relay, a server of items and people as processes of their own,
appends the orders, waits until every one of them has come to its end, and draws what flowed where.
One payment is left to the person at the keyboard, with a link. Then it holds the
ledgers of the third parties, and what the people were told, against what was promised to customers:
the tables of the outbox have no part in that. Killed at any time, it goes on when it is run again.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from audit import Ledgers, Story, broken_promises
from ledger_files import THIRD_PARTIES, Tail, read_lines
from people import ROLE_OF, new_events
from scripts.orders_demo import EXAMPLE, ROOT
from scripts.orders_demo.children import Children, DemoFailed, beside, note_death, outbox
from scripts.orders_demo.folder import HOSTS, Folder
from scripts.orders_demo.terminal import OrdersTerminal

from delta_outbox.cli.logs import logging_to
from delta_outbox.cli.outcome import UnexpectedError
from delta_outbox.core.errors import OutboxError

if TYPE_CHECKING:
    from delta_outbox.railway.drawing import Drawing

logger = logging.getLogger(__name__)

ORDERS: Final = 1000
SEED: Final = 20261128
FOLDER: Final = ROOT / "orders-demo"
LOOK_SECONDS: Final = 0.5  # between two looks at processes and ledgers
TELL_SECONDS: Final = 10.0  # between two lines of progress
EXTEND_SECONDS: Final = 5.0  # until it is tried again to let the item that is left expire later
LEFT_SECONDS: Final = 7 * 24 * 3600  # that the person at the keyboard has
LONGEST: Final = 3600.0  # seconds, for all orders to come to their end

# All invariants, with the projection that they ask. The other views stay as they are: whoever draws
# meanwhile asks them.
INVARIANTS: Final = ("outbox_state", "tag:invariants")
ROLES: Final = sorted({*ROLE_OF.values()})

DONE: Final = 0
BROKEN: Final = 1


@dataclass
class LeftItem:
    """An item that is left to the person at the keyboard.

    Args:
        task_id: the task identifier.
        order: whose payment it is.
    """

    task_id: str
    order: str
    _extended: Future[bool] | None = None
    _next_try: float = 0.0  # monotonic seconds

    @property
    def waits(self) -> bool:
        """Say whether it is known to wait for the person."""
        extended = self._extended
        if extended is None or not extended.done() or extended.exception():
            return False
        return extended.result()

    def extend(self, beside: Executor, extend: Callable[[str], bool]) -> None:
        """Let it expire much later, unless that is being done or was done. While Spark is killed
        that may fail; then it is tried again later.

        Args:
            beside: where that is done.
            extend: does it, and says whether the item was open.
        """
        now = time.monotonic()
        if self._extended is not None and self._extended.done() and self._extended.exception():
            self._extended, self._next_try = None, now + EXTEND_SECONDS
        if self._extended is None and now >= self._next_try:
            self._extended = beside.submit(extend, self.task_id)


@dataclass
class Progress:
    """How far the orders are, from what others have written down.

    Args:
        folder: of the demo.
        orders: how many.
        left: the item that is left to the person at the keyboard, its order, and whether it still
            waits; None: not known yet.
        done: what third parties have done, by their name.
        answered: items whose answer counts.
        silent: orders whose customer lets the time pass, until when in seconds since 1970.
        ends: orders by the events that were delivered.
    """

    folder: Folder
    orders: int
    left: LeftItem | None = None
    done: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)
    silent: dict[str, float] = field(default_factory=dict)
    ends: dict[str, set[str]] = field(default_factory=dict)
    _ledgers: dict[str, Tail] = field(default_factory=dict)
    _delivered: dict[Path, Tail] = field(default_factory=dict)

    def look(self) -> bool:
        """Read what is new; say whether all orders have come to their end."""
        for name in (*THIRD_PARTIES, "people"):
            path = self.folder.ledgers / f"{name}.jsonl"
            for line in self._ledgers.setdefault(name, Tail(path)).lines():
                self.done[name] += _counts(name, line)
                if name == "people":
                    self._note(line)
        for one in new_events(self.folder.home.delivered, self._delivered):
            if one["event_type"].startswith("order."):  # items tell that they are due, too
                order = json.loads(one["payload"])["order_id"]
                self.ends.setdefault(one["event_type"], set()).add(order)
        undone = self._of("order.compensated") | self._of("by hand")
        over = {*self.ended, *([self.left.order] if self.left and self.left.waits else [])}
        return len(over) == self.orders and self._of("order.cancelled") <= undone

    def _note(self, line: Mapping[str, Any]) -> None:
        """Keep what people have written down."""
        if "is_left" in line:
            self.left = LeftItem(line["task_id"], line["order"])
        elif "undone" in line:
            self.ends.setdefault("by hand", set()).add(line["undone"])
        elif "says_nothing" in line or "is_late" in line:
            self.silent[line["order"]] = line.get("until") or 0.0
        else:
            self.silent.pop(line["order"], None)
            if line.get("was_told", {}).get("outcome") is not None:
                self.answered.add(line["task_id"])

    @property
    def ended(self) -> set[str]:
        """Return the orders that were confirmed or cancelled."""
        return self._of("order.confirmed") | self._of("order.cancelled")

    def line(self) -> str:
        """Return how far they are, in a line."""
        words = {
            "shop": "registered",
            "invoicing": "invoices",
            "terminal": "asked for money",
            "people": "answers",
            "payments": "paid",
        }
        counts = {**self.done, "people": len(self.answered)}
        told = ", ".join(f"{counts.get(name, 0):,} {word}" for name, word in words.items())
        left = ", one waits for you" if self.left and self.left.waits else ""
        return f"{told}; {len(self.ended):,} of {self.orders:,} at their end{left}"

    def waits_for(self, now: float) -> str:
        """Return what has to come yet before all is over, in a line; empty if nothing is known.

        Args:
            now: seconds since 1970.
        """
        until = [at for order, at in self.silent.items() if order not in self.ended]
        undone = self._of("order.compensated") | self._of("by hand")
        to_undo = len(self._of("order.cancelled") - undone)
        parts = []
        if until:
            says = "1 customer says" if len(until) == 1 else f"{len(until):,} customers say"
            left = max(until) - now
            last = f"the last has {left:.0f} s left" if left > 0 else "and the time is over"
            parts.append(f"{says} nothing, {last}")
        if to_undo:
            parts.append("1 order to undo" if to_undo == 1 else f"{to_undo:,} orders to undo")
        return "; ".join(parts)

    def _of(self, event_type: str) -> set[str]:
        return self.ends.get(event_type, set())


def _counts(name: str, line: Mapping[str, Any]) -> bool:
    """Say whether a line of a ledger is what its third party is there for: no release, no void."""
    return "done" in line and (name != "invoicing" or line["key"].startswith("create-invoice-"))


@dataclass(frozen=True, kw_only=True)
class Demo:
    """One run.

    Args:
        folder: where everything lies.
        orders: how many.
        seed: of all that happens.
        terminal: what a person sees.
        started: monotonic seconds.
    """

    folder: Folder
    orders: int
    seed: int
    terminal: OrdersTerminal
    started: float = field(default_factory=time.monotonic)

    def run(self) -> int:
        """Tell the whole story and return the exit code."""
        self.terminal.headline(
            f"delta-outbox: {self.orders:,} orders, six third parties that misbehave, and people "
            f"(seed {self.seed})."
        )
        self.folder.make(orders=self.orders, seed=self.seed)
        if self.folder.is_running.exists():
            last = self.folder.is_running.stat().st_mtime
            has_called = bool([*read_lines(self.folder.ledgers / "shop.jsonl")])
            calls = HOSTS if has_called else 0  # it may have died before any order began
            note_death(self.folder, "demo", calls=calls, seen_alive=last)
            self.terminal.note("A demo was killed here, or has failed: it goes on.")
        children = Children(self.folder, self.seed)
        try:
            with self.folder.alive():
                self._prepare(children)
                left = self._run_orders(children)
            self.folder.is_running.unlink()
            with beside(2) as threads:
                audited, drawn = threads.submit(self._audit), threads.submit(self._draw)
                with self.terminal.step("dbt build", "checking the invariants") as step:
                    outbox(self.folder, "dbt", "build", "--select", *INVARIANTS)
                    step.says = "no invariant broken"
                with self.terminal.step("picture", "counting what flowed where") as step:
                    pictures = drawn.result()
                    names = ", ".join(one.file.name for one in pictures)
                    step.says = f"{names} in {self.folder.root}"
                with self.terminal.step("audit", "reading the ledgers") as step:
                    found = audited.result()
                    step.says = found.says
        finally:
            children.end()
            outbox(self.folder, "down")
        self._tell(found, left, pictures, at=children.todo)
        return BROKEN if found.broken else DONE

    def _prepare(self, children: Children) -> None:
        with self.terminal.step("third parties", "starting them") as step:
            children.start_third_parties()
            children.todo = self.folder.write_settings(children.urls)
            step.says = f"{len(children.urls)} processes, each with a ledger of its own"
        with self.terminal.step("outbox", "starting Spark, building with dbt") as step:
            is_built = self.folder.is_built.exists()
            with beside(2) as threads:  # these need no Spark
                files = [] if is_built else [("workflow", "build"), ("dbt", "deps")]
                begun = [threads.submit(outbox, self.folder, *words) for words in files]
                outbox(self.folder, "up", "--max-wait", "600")
                for one in begun:
                    one.result()
            if not is_built:
                # Nothing is in the logs that could break an invariant; at the end all are checked.
                outbox(self.folder, "dbt", "build", "--exclude-resource-type", "test")
                self.folder.is_built.touch()
            step.says = f"{self.folder.root}: logs, views, two workflows in force"
        with self.terminal.step("orders", "appending them") as step, beside(len(ROLES)) as threads:
            keys = {}
            if not self.folder.keys.exists():
                keys = {role: threads.submit(_new_key, self.folder, role) for role in ROLES}
            report = outbox(self.folder, "append", str(self.folder.orders))
            if keys:
                self.folder.write_keys({role: key.result() for role, key in keys.items()})
            step.says = f"{report['appended']:,} appended, {report['already_present']:,} there"

    def _run_orders(self, children: Children) -> LeftItem | None:
        """Let the orders run to their ends; return the item that is left to the person."""
        progress = Progress(self.folder, self.orders)
        with (
            self.terminal.step("workflows", "", spinner=False) as step,
            beside(1) as threads,  # looks at processes do not wait for what takes long
        ):
            children.start_workers()
            begun, told = time.monotonic(), 0.0
            while not progress.look():
                for event in children.look():
                    self.terminal.note(event)
                if progress.left:
                    progress.left.extend(threads, partial(_extended, self.folder))
                now = time.monotonic()
                if now - told >= TELL_SECONDS:
                    told = now
                    self.terminal.progress(
                        progress.line(), progress.waits_for(time.time()), seconds=now - begun
                    )
                if now - begun > LONGEST:
                    raise DemoFailed(f"After {LONGEST:.0f} s: {progress.line()}.")
                time.sleep(LOOK_SECONDS)
            children.end_workers()
            step.says = progress.line()
        return progress.left if progress.left and progress.left.waits else None

    def _draw(self) -> list[Picture]:
        """Draw the workflows with what flowed where, and return the files. The views that are asked
        must not be replaced meanwhile, as a build of all would.
        """
        from delta_outbox import open_outbox
        from delta_outbox.railway import drawing, graphviz_files
        from delta_outbox.railway.modules import load
        from delta_outbox.workflow_engine.workflow_views import flows

        with open_outbox(home=self.folder.home) as opened:
            opened.refresh()
            counts = flows(opened)
        pictures = []
        for one in load(["orders_hurried"], self.folder.root):
            drawn = drawing.draw(one, counts=counts.get(one.name))
            file = self.folder.root / f"{drawn.title.lower().replace(' ', '_')}.svg"
            graphviz_files.save(drawn, file)
            pictures.append(Picture(drawing=drawn, file=file))
        return pictures

    def _audit(self) -> Audited:
        story = Story.of(self.folder.root)
        ledgers = Ledgers.of(self.folder.ledgers)
        return Audited(
            broken=list(broken_promises(ledgers, story)),
            says=(
                f"{sum(len(one.lines) for one in ledgers.all):,} lines of ledgers, "
                f"{len(story.given):,} answers of people, {story.killed} calls may have been killed"
            ),
            orders=sorted(story.answers("customer_support_review")) or sorted(story.ordered),
        )

    def _tell(
        self, found: Audited, left: LeftItem | None, pictures: Sequence[Picture], *, at: str
    ) -> None:
        for one in pictures:
            self.terminal.flows(one.drawing)
        self.terminal.verdict(found.broken)
        if left is not None:
            link = f"{at}{outbox(self.folder, 'todo', 'link', left.task_id)['path']}"
            self.terminal.left(left.order, link)
        self.terminal.where_to_look(
            next_commands(
                self.folder,
                order=left.order if left else found.orders[0],
                serves=left is not None,
                pictures=[one.file for one in pictures],
            ),
            seconds=time.monotonic() - self.started,
        )


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What the audit has found.

    Args:
        broken: promises, each in a sentence.
        says: what it has read.
        orders: that are worth looking at.
    """

    broken: Sequence[str]
    says: str
    orders: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A workflow with what flowed where.

    Args:
        drawing: that was drawn.
        file: which holds it.
    """

    drawing: Drawing
    file: Path


def _new_key(folder: Folder, role: str) -> str:
    """Return a new API key of those who have a role."""
    return str(outbox(folder, "todo", "keys", "add", "--person", role, "--role", role)["key"])


def _extended(folder: Folder, task_id: str) -> bool:
    """Let an item expire much later; say whether it is open."""
    why = ["--actor", "demo", "--reason", "left to the person at the keyboard"]
    words = ["todo", "extend", task_id, "--by", str(LEFT_SECONDS), *why, "--apply"]
    # 1: the item is over, and was left out.
    return bool(outbox(folder, *words, fine=(0, 1))["extended"])


def next_commands(
    folder: Folder, *, order: str, serves: bool, pictures: Sequence[Path]
) -> list[str]:
    """Return commands that show what the demo has left.

    Args:
        folder: of the demo.
        order: one that is worth looking at.
        serves: an item waits for the person who reads this.
        pictures: of the workflows, with what flowed where.
    """
    command = Path(sys.executable).with_name("outbox")
    query = "select * from {{ ref('delta_outbox', 'uncertain_outcomes') }}"
    return [
        f"ls {' '.join(map(str, pictures))}    # what flowed where: open them in a browser",
        f"grep -w {order} {folder.ledgers}/*    # all that happened to an order outside",
        f"{sys.executable} {EXAMPLE / 'audit.py'} {folder.root}",
        f"cd {folder.root}",
        f"{command} up",
        *(
            [f"{command} todo serve    # until Ctrl-C: the link above leads to it"]
            if serves
            else []
        ),
        f"{command} status",
        f"{command} workflow show {order}",
        f"{command} todo list --ended",
        f'{command} dbt show --inline "{query}"',
        f"{command} down",
    ]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.orders_demo", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--orders", type=_count, default=ORDERS, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=SEED, help="of all that happens")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help="of the demo")
    parser.add_argument("--debug", action="store_true", help="log in detail")
    return parser.parse_args(argv)


def _count(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 100_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 100,000. Got: {text!r}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code.

    Args:
        argv: the arguments; those of this process if left out.
    """
    given = parse(argv)
    terminal = OrdersTerminal()
    with logging_to(sys.stderr, debug=given.debug):
        try:
            return Demo(
                folder=Folder(root=given.folder.expanduser().resolve()),
                orders=given.orders,
                seed=given.seed,
                terminal=terminal,
            ).run()
        except OutboxError as error:
            failure: Any = error
        except KeyboardInterrupt:
            failure = DemoFailed("Interrupted.")
        except Exception as error:
            logger.debug("demo_failed", exc_info=True)
            failure = UnexpectedError.of(error)
    terminal.error(failure.as_dict())
    return int(failure.exit_code)
