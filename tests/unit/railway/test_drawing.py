"""The picture, the page and the classes of a workflow say the same."""

from __future__ import annotations

import re
import sys

import pytest
from tests.unit.railway.workflow import Pack, Tell, change, graph

from delta_outbox.railway import AtLeastOnce, AtMostOnce, Event, UpTo
from delta_outbox.railway.drawing import CAUSES, Counts, draw, mermaid
from delta_outbox.railway.graphviz_files import NoGraphviz, layout, save
from delta_outbox.railway.names import title
from delta_outbox.railway.pages import page


def test_every_leg_is_an_arrow_of_the_picture() -> None:
    """Whatever can become of a task has an arrow with its word, and there are no others."""
    workflow = graph()
    drawn = {
        (arrow.start, arrow.end, word) for arrow in draw(workflow).arrows for word in arrow.words
    }
    declared = set()
    for task in workflow.tasks:
        for leg in workflow.legs(task):
            end = leg.target
            assert end is not None
            name = (
                f"event_{end.event_type.replace('.', '_')}"
                if isinstance(end, Event)
                else end.task_name()
            )
            word = title(str(leg.outcome)).lower() if leg.cause == "decided" else CAUSES[leg.cause]
            declared.add((task.task_name(), name, word))
    assert declared == drawn


def test_mermaid_has_a_line_for_each_box_and_arrow() -> None:
    """The text of the picture has the names of the business, and dashes for what happens."""
    text = mermaid(draw(graph(title='Parcels & "gifts"')))
    assert '    pack("Pack<br/>Deterministic<br/>within 2 hours"):::deterministic' in text
    assert '    check("Check<br/>To Do<br/>by shipping<br/>within 1 day"):::to_do' in text
    assert '    pack -->|"broken, nobody knows"| check' in text
    assert '    pack -.->|"not possible, expired"| event_parcel_lost' in text
    assert '    start(["Parcel ready"]) --> label' in text


def test_arrows_say_how_often_they_were_taken() -> None:
    """What has flowed stands on the arrow that it took, in both forms: an outcome on that of the
    outcome, however it came about, and all else on that of the default exit.
    """
    ended = {("pack", "packed"): 1200, ("pack", "broken"): 3, ("pack", "default exit"): 2}
    drawing = draw(graph(), counts=Counts(started=1206, ended=ended))
    taken = {(one.words, one.count) for one in drawing.arrows if one.start == "pack"}
    assert {
        (("packed",), 1200),
        (("broken", "nobody knows"), 3),
        (("not possible", "expired"), 2),
    } <= taken
    assert 1205 == sum(count or 0 for _, count in taken)
    assert {0} == {one.count for one in drawing.arrows if one.start != "pack"}
    text = mermaid(drawing)
    assert '    pack -->|"broken, nobody knows<br/>3"| check' in text
    assert '-->|"1,206"| label' in text
    made = layout(drawing).string()
    assert "1,200" in made
    assert "1,206" in made
    assert not any(char.isdigit() for one in draw(graph()).arrows for char in "".join(one.lines))


def test_a_word_cannot_break_the_picture() -> None:
    """Quotes, angle brackets and ampersands in a title are text."""
    swapped = graph(change(Pack, title='Pack "<fast>" & well'))
    assert '"Pack &quot;&lt;fast>&quot; &amp; well<br/>' in mermaid(draw(swapped))
    assert "&lt;fast&gt;" in layout(draw(swapped)).string()


def test_graphviz_has_the_same_boxes_and_arrows() -> None:
    """SVG and PNG are drawn of the same boxes and arrows as Mermaid."""
    drawing = draw(graph())
    made = layout(drawing)
    assert {"start", *(box.name for box in drawing.boxes)} == set(made.nodes())
    assert 1 + len(drawing.arrows) == len(made.edges())


def test_a_picture_is_a_png_or_an_svg(tmp_path) -> None:
    """Another form is refused."""
    with pytest.raises(ValueError, match=r"ends with .svg or .png"):
        save(draw(graph()), tmp_path / "shipping.gif")


def test_without_graphviz_the_extra_is_named(monkeypatch) -> None:
    """Whoever lacks pygraphviz is told what to install."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(NoGraphviz) as error:
        layout(draw(graph()))
    assert "delta-outbox[draw]" in error.value.remedy


def test_the_page_has_a_row_for_each_task() -> None:
    """Each task stands in the table with its kind, its time and all that comes of it."""
    text = page(graph())
    rows = [
        line for line in text.splitlines() if re.match(r"\| (Label|Pack|Book|Tell|Check) ", line)
    ]
    assert 6 == len(rows)  # five tasks, and the black box with its concerns
    assert (
        "| Check | To Do | shipping | 1 day, due after 1 hour | send: ends with parcel.sent"
        "<br>again: Label<br>*expired*: ends with parcel.sent |"
    ) in rows
    assert page(graph()) == text


@pytest.mark.parametrize(
    ("compromise", "words"),
    [
        (AtMostOnce(), "given up: at most once"),
        (AtLeastOnce(), "tried again until it is certain or expired: at least once"),
        (UpTo(3), "tried again, 3 times in all"),
    ],
)
def test_the_page_says_what_was_decided_about_a_black_box(compromise, words) -> None:
    """The compromise, the checklist, who decided and why are on the page."""
    text = page(graph(change(Tell, compromise=compromise)))
    assert f"| Tell | {words} | traceable | must happen | customer | reputation |" in text
    assert "head of shipping, 2026-11-03 | a parcel that nobody expects comes back |" in text
