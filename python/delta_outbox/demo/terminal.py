"""What the demo says: one line per step, the proof, and where to look next."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from delta_outbox.cli.render import console_for, printable, sentence
from delta_outbox.demo.verify import Proof
from delta_outbox.runtime.home import DEFAULT_NAME, HOME_VARIABLE, Home

_NAME_WIDTH: Final = 10  # cells
_TOLD: Final = (
    ("missing", "expected and not delivered"),
    ("unexpected", "delivered and not expected"),
    ("altered", "another type, key, trace or payload than the flight has"),
    ("out_of_order", "after a later event of the same tail number"),
)


@dataclass(kw_only=True)
class Step:
    """One line of the story; what it says is known at its end.

    Args:
        name: the first word.
        says: the rest, set inside the step.
    """

    name: str
    says: str = ""


@dataclass(kw_only=True)
class Terminal:
    """The consoles, with colours and a spinner where somebody watches.

    Args:
        console: where the story goes: standard output.
        errors: where its failure goes: standard error.
    """

    console: Console = field(default_factory=lambda: console_for(sys.stdout))
    errors: Console = field(default_factory=lambda: console_for(sys.stderr))

    def headline(self, text: str) -> None:
        """Print what this is about to show."""
        self.console.print()
        self.console.print(Text(text, style="bold"))
        self.console.print()

    @contextlib.contextmanager
    def step(self, name: str, doing: str, *, spinner: bool = True) -> Iterator[Step]:
        """Show what is being done for a block, and what came of it, with its time, after it.

        Args:
            name: the first word of the line.
            doing: shown meanwhile, on a terminal only.
            spinner: leave it out where the block shows a progress of its own.
        """
        step = Step(name=name)
        started = time.monotonic()
        watched = spinner and self.console.is_terminal
        wait = f"{name:<{_NAME_WIDTH}}  {doing}"
        with self.console.status(Text(wait)) if watched else contextlib.nullcontext():
            yield step
        mark = "ok" if self.console.options.ascii_only else "\N{CHECK MARK}"
        self.console.print(
            Text.assemble(
                (f"  {mark} ", "green"),
                (f"{name:<{_NAME_WIDTH}}  ", "bold"),
                printable(step.says),
                (f"  {time.monotonic() - started:.1f} s", "dim"),
            )
        )

    def proof(self, proof: Proof, *, against: str, within: str = "") -> None:
        """Print the comparison.

        Args:
            proof: what was found.
            against: where the delivered events were read.
            within: where order can be seen, if not over all of them.
        """
        rows: list[tuple[str, int, str, str]] = [
            ("expected", proof.expected, "", "events, computed from the flights table"),
            ("delivered", proof.delivered, "", f"read back from {printable(against)}"),
        ]
        for name, meaning in _TOLD:
            count = getattr(proof, name)
            meaning += f", {within}" if within and name == "out_of_order" else ""
            rows.append((name.replace("_", " "), count, "bold red" if count else "green", meaning))
        rows.append(("duplicates", proof.duplicates, "", "copies: at-least-once may deliver again"))
        if proof.others:
            rows.append(("others", proof.others, "", "not flights, or cut off by a crash"))
        self.console.print()
        self.console.print(Text("The proof", style="bold"))
        for name, count, style, meaning in rows:
            self.console.print(
                Text.assemble(f"  {name:<14}", (f"{count:>9,}", style), "  ", meaning)
            )
        self.console.print()
        if proof.holds:
            verdict = (
                f"Every event arrived as it is, in order for each of {proof.scopes:,} tail numbers."
            )
            self.console.print(Text(f"  {verdict}", style="bold green"))
        else:
            verdict = "The delivery is not what the flights ask for."
            self.console.print(Text(f"  {verdict}", style="bold red"))

    def where_to_look(self, commands: Sequence[str], *, seconds: float) -> None:
        """Print what to try next.

        Args:
            commands: as a person types them.
            seconds: since the start.
        """
        self.console.print()
        self.console.print(Text("Where to look next", style="bold"))
        for command in commands:
            self.console.print(
                Text(f"  {printable(command)}", style="cyan"), soft_wrap=True, crop=False
            )
        self.console.print()
        self.console.print(Text(f"{seconds:.0f} s in all.", style="dim"))

    def error(self, error: Mapping[str, str]) -> None:
        """Print what went wrong and what to do.

        Args:
            error: code, message and remedy.
        """
        self.errors.print(sentence(f"{error['code']}: {error['message']}", style="bold red"))
        self.errors.print(sentence(error["remedy"]))


def next_commands(home: Home, *, event_id: str, cwd: Path | None = None) -> list[str]:
    """Return commands that show what the demo left, as they work in this folder.

    Args:
        home: of the outbox.
        event_id: one of its events.
        cwd: the working folder.
    """
    here = (cwd or Path.cwd()).resolve()
    scripts = Path(sys.prefix) / "bin"  # .venv/bin here, if it is the environment of the checkout
    prefix = f"{scripts.relative_to(here)}/" if scripts.is_relative_to(here) else ""
    root = home.root.relative_to(here) if home.root.is_relative_to(here) else home.root
    found_anyway = home.root == here / DEFAULT_NAME and not os.environ.get(HOME_VARIABLE)
    at = "" if found_anyway else f"{HOME_VARIABLE}={root} "
    outbox = f"{at}{prefix}outbox"
    query = "select event_type, state, count(*) as events from {{ ref('outbox') }} group by all"
    return [
        f"{outbox} status",
        f"{outbox} list --type flight.cancelled --limit 5",
        f"{outbox} show {event_id}",
        f'{outbox} dbt show --inline "{query}"',
    ]
