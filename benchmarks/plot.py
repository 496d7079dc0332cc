"""The plot of the README: who delivers how many events a second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from benchmarks.tables import OURS, RAW
from matplotlib.figure import Figure

_LABELS: Final = {
    OURS: "delta-outbox",
    "skip locked": "PostgreSQL, skip locked",
    "procrastinate, no order": "procrastinate, no order",
    "procrastinate": "procrastinate",
    RAW: "raw producer (the limit)",
}
_COLOURS: Final = {OURS: "#d35400", RAW: "#bdc3c7"}
_PEER: Final = "#5d7a99"


def bars(document: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """Return (label, events per second, colour) from the fastest to the slowest.

    Args:
        document: of the case `drain`.
    """
    found = document["contenders"]
    shown = [
        (label, float(found[name]["rate"]), _COLOURS.get(name, _PEER))
        for name, label in _LABELS.items()
        if name in found
    ]
    return sorted(shown, key=lambda bar: -bar[1])


def plot(document: Mapping[str, Any], file: Path) -> None:
    """Draw the bars into a PNG.

    Args:
        document: of the case `drain`.
        file: to write.
    """
    shown = bars(document)
    mpl.use("agg")  # no display is needed
    figure = Figure(figsize=(8, 0.6 * len(shown) + 1.2), layout="constrained")
    axes = figure.subplots()
    labels, rates, colours = zip(*shown, strict=True)
    drawn = axes.barh(labels, rates, color=colours)
    axes.bar_label(drawn, labels=[f" {rate:,.0f}" for rate in rates])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("events per second, 512-byte payloads, acks=all (logarithmic)")
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
