"""Drawings as SVG and PNG files, by Graphviz; needs the extra `draw`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, ClassVar, Final

from delta_outbox.core.errors import OutboxError
from delta_outbox.railway.drawing import COLOURS, Arrow, Box, Drawing
from delta_outbox.railway.names import title

FONT: Final = "DejaVu Sans"
FORMATS: Final = (".svg", ".png")


class NoGraphviz(OutboxError):
    """A drawing as SVG or PNG needs pygraphviz: install the extra `draw`."""

    code: ClassVar[str] = "NO_GRAPHVIZ"
    remedy = "pip install 'delta-outbox[draw]', or draw Mermaid, which needs nothing."

    def __init__(self) -> None:
        super().__init__("SVG and PNG are drawn by pygraphviz, which is not installed.")


def save(drawing: Drawing, path: Path) -> None:
    """Write a drawing into a file.

    Args:
        drawing: of a workflow.
        path: ends with `.svg` or `.png`.

    Raises:
        NoGraphviz: the extra is missing.
        ValueError: the path ends with something else.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: a drawing ends with .svg or .png")
    graph = layout(drawing)
    # Not by its path: Python 3.11.2 cannot open the file that pygraphviz asks for.
    path.write_bytes(graph.draw(format=path.suffix.removeprefix("."), prog="dot"))
    graph.close()


def layout(drawing: Drawing) -> Any:
    """Return a drawing as a graph of Graphviz.

    Args:
        drawing: of a workflow.
    """
    try:
        graphviz: Any = importlib.import_module("pygraphviz")
    except ModuleNotFoundError:
        raise NoGraphviz from None
    graph = graphviz.AGraph(
        directed=True,
        strict=False,
        rankdir="TB",
        nodesep="0.35",
        ranksep="0.5",
        label=drawing.title,
    )
    graph.graph_attr.update(labelloc="t", fontname=FONT, fontsize="15", pad="0.2")
    graph.node_attr.update(
        shape="box", style="rounded,filled", fontname=FONT, fontsize="11", color="#444444"
    )
    graph.edge_attr.update(fontname=FONT, fontsize="9", color="#444444")
    graph.add_node(
        "start", label=title(drawing.starts_on), shape="ellipse", fillcolor=COLOURS["event"]
    )
    for box in drawing.boxes:
        graph.add_node(box.name, **_box(box))
    begun = {} if drawing.started is None else {"label": f" {drawing.started:,}"}
    graph.add_edge("start", drawing.first, **begun)
    for number, arrow in enumerate(drawing.arrows):
        graph.add_edge(arrow.start, arrow.end, key=str(number), **_arrow(arrow))
    return graph


def _box(box: Box) -> dict[str, str]:
    head, *rest = (_html(one) for one in box.lines)
    small = "".join(f'<br/><font point-size="9">{one}</font>' for one in rest)
    made = {"label": f"<<b>{head}</b>{small}>", "fillcolor": COLOURS[box.kind]}
    if box.kind == "event":
        made["shape"] = "ellipse"
    if box.people:
        made["penwidth"] = "2"
    return made


def _arrow(arrow: Arrow) -> dict[str, str]:
    # Each word on a line of its own keeps the drawing narrow.
    made = {"label": " " + "\n ".join(arrow.lines)}
    if arrow.trouble:
        made |= {"style": "dashed", "color": "#a0a0a0", "fontcolor": "#808080"}
    return made


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
