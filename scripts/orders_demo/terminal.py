"""What the demo says beside its steps: what flowed where, the verdict, and what is left."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from delta_outbox.demo.terminal import Terminal
from delta_outbox.railway.drawing import Drawing

MOST_TOLD = 20  # broken promises


class OrdersTerminal(Terminal):
    """The consoles of the demo of orders."""

    def progress(self, line: str, waits_for: str, *, seconds: float) -> None:
        """Print how far the orders are.

        Args:
            line: in a line.
            waits_for: what has to come yet; empty if that is not known.
            seconds: since they have begun.
        """
        self.console.print(Text(f"    {seconds:4.0f} s  {line}"))
        if waits_for:
            self.console.print(Text(f"            {waits_for}", style="dim"))

    def note(self, sentence: str) -> None:
        """Print what has happened beside the orders.

        Args:
            sentence: in words.
        """
        self.console.print(Text(f"    {sentence}", style="yellow"), soft_wrap=True)

    def flows(self, drawing: Drawing) -> None:
        """Print how often each way through a workflow was taken.

        Args:
            drawing: with counts.
        """
        names = {box.name: box.lines[0] for box in drawing.boxes}
        self.console.print()
        self.console.print(
            Text.assemble((drawing.title, "bold"), f", begun {drawing.started or 0:,} times")
        )
        for arrow in drawing.arrows:
            if arrow.count:
                self.console.print(
                    Text.assemble(
                        f"  {arrow.count:>7,}  {names[arrow.start]}",
                        (f"  {', '.join(arrow.words)}  ", "dim"),
                        names[arrow.end],
                    ),
                    soft_wrap=True,
                )

    def verdict(self, broken: Sequence[str]) -> None:
        """Print what the audit has found.

        Args:
            broken: promises, each in a sentence.
        """
        self.console.print()
        if not broken:
            self.console.print(
                Text("  No promise is broken, by the ledgers alone.", style="bold green")
            )
            return
        for one in broken[:MOST_TOLD]:
            self.console.print(Text(f"  {one}", style="bold red"), soft_wrap=True)
        self.console.print(Text(f"  {len(broken):,} promises are broken.", style="bold red"))

    def left(self, order: str, link: str) -> None:
        """Print how the person at the keyboard answers what is left.

        Args:
            order: whose payment it is.
            link: to the page of its item.
        """
        self.console.print()
        self.console.print(
            Text(
                f"The payment of {order} is left to you. While `outbox todo serve` runs (below), "
                "open the link and answer. Run the demo again: the order goes on from there."
            ),
            soft_wrap=True,
        )
        self.console.print(Text(f"  {link}", style="cyan"), soft_wrap=True, crop=False)
