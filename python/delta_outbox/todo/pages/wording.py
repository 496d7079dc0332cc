"""What pages say of items: times, groups, and what came of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from delta_outbox.todo.pages.fields import human

if TYPE_CHECKING:
    from delta_outbox.todo.desk import ItemSummary
    from delta_outbox.todo.pages.sessions import Receipt

HOME: Final = "/todo"
ITEM_PATH: Final = "/todo/item"
OVERDUE: Final = "Overdue"

_UNITS: Final = ((86400, "day"), (3600, "hour"), (60, "minute"))


@dataclass(frozen=True, kw_only=True)
class Line:
    """An item as a line of a list.

    Args:
        address: of its page.
        title: what is to be done.
        about: what it is about.
        mark: by when.
    """

    address: str
    title: str
    about: str
    mark: str


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a page says first.

    Args:
        look: `good`, `bad`, or empty.
        heading: in a few words.
        text: a sentence or two.
    """

    look: str
    heading: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Note:
    """A page that says one thing.

    Args:
        heading: in a few words.
        text: a sentence or two.
        next: the address that it leads to; empty: the page itself, at once.
        link: what leads there is called; empty: nothing does.
    """

    heading: str
    text: str
    next: str = HOME
    link: str = ""


UNDECIDED: Final = Told(
    look="bad",
    heading="Your answer could not be decided",
    text="Something is wrong on our side. Your answer is not on record, and what you have typed is "
    "still here. Tell whoever runs this service.",
)
SAME_PERSON: Final = Told(
    look="bad",
    heading="Somebody else must answer this",
    text="You have answered another item of the same case, and two people must look at it. Your "
    "answer is not on record.",
)
UNKNOWN: Final = Told(
    look="bad",
    heading="Your answer is not confirmed yet",
    text="Send it once more, as it is: it counts once, and then you are told what came of it.",
)
CONTINUE: Final = Note(
    heading="One moment", text="If this page stays, go on by yourself.", next="", link="Continue"
)
NOT_SENT: Final = Note(
    heading="Nothing was sent",
    text="This form is too old, too large or not from here, or you have signed out meanwhile.",
    link="Go on",
)
BAD_ADDRESS: Final = Note(
    heading="This address is not right",
    text="Something in it cannot be understood.",
    link="Go to your items",
)
TRY_AGAIN: Final = Note(
    heading="This does not work at the moment",
    text="Something is wrong on our side. Try again in a minute.",
)
# The same for what is none, what is another's, and what is over for who has a link.
NOT_FOUND: Final = Note(
    heading="There is nothing here", text="The address is wrong, or what it led to is closed."
)


def moment(at: datetime) -> str:
    """Return an instant as a person reads it.

    Args:
        at: in UTC.
    """
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def duration(span: timedelta) -> str:
    """Return a time in its largest whole unit.

    Args:
        span: at least 0.
    """
    seconds = int(span.total_seconds())
    for size, unit in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def groups(items: Iterable[ItemSummary], now: datetime) -> Iterator[tuple[str, Sequence[Line]]]:
    """Yield the groups of a list, each with its heading, in the order of the items.

    Args:
        items: by due date.
        now: the moment, in UTC.
    """
    for heading, some in groupby(items, lambda item: _group(item, now)):
        yield heading, [_line(item, now) for item in some]


def about(document: Mapping[str, Any], now: datetime) -> str:
    """Return what is said of an item below its heading.

    Args:
        document: as `Items.show` returns it.
        now: the moment, in UTC.
    """
    parts = []
    for key, before, after in (("due_at", "Due", "Was due"), ("expires_at", "Ends", "Ended")):
        if document.get(key):
            at = datetime.fromisoformat(document[key])
            parts.append(f"{before if at > now else after} {moment(at)}")
    return " · ".join(parts)


def told(document: Mapping[str, Any], receipt: Receipt | None) -> Told | None:
    """Return what the page of an item says first; None if the item waits for an answer.

    Args:
        document: as `Items.show` returns it.
        receipt: of the answer that this browser has sent, if it has.
    """
    if receipt is not None:
        outcome = f"The outcome is: {human(receipt.outcome)}." if receipt.outcome else ""
        match receipt.came:
            case "answered":
                return Told(look="good", heading="Thank you, your answer counts", text=outcome)
            case "faster":
                return Told(
                    look="bad",
                    heading="Somebody was faster",
                    text=f"Another answer counts. {outcome} Yours was not recorded.",
                )
        return Told(
            look="bad",
            heading="Too late",
            text="This ended before your answer arrived. Your answer is on record, but it changes "
            "nothing any more.",
        )
    match document["state"]:
        case "open":
            return None
        case "opening":
            return Told(look="", heading="Not open yet", text="Try again in a few seconds.")
        case "ending":
            return Told(look="", heading="This is about to end", text="Try again in a minute.")
        case "answered":
            return Told(look="", heading="This is answered", text="Nothing is left to be done.")
    ended = document["outcome"]
    text = f"The outcome is: {human(ended)}." if ended else "It has no outcome."
    return Told(look="", heading="This is closed", text=text)


def plain(value: Any) -> str:
    """Return a single value of a read model as a person reads it.

    Args:
        value: of JSON, neither object nor array with something in it.
    """
    if value is None or value in ("", []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def item_address(task_id: str) -> str:
    """Return the address of the page of an item.

    Args:
        task_id: of the item.
    """
    return f"{ITEM_PATH}?{urlencode({'id': task_id})}"


def _group(item: ItemSummary, now: datetime) -> str:
    if item.is_overdue:
        return OVERDUE
    first = item.due_at or item.expires_at
    if first is None:
        return "Without a date"
    return "Within a day" if first - now < timedelta(days=1) else "Later"


def _line(item: ItemSummary, now: datetime) -> Line:
    return Line(
        address=item_address(item.task_id),
        title=item.title,
        about=f"{item.instance} · {human(item.workflow)}",
        mark=_mark(item, now),
    )


def _mark(item: ItemSummary, now: datetime) -> str:
    if item.is_overdue and item.due_at is not None:
        return f"Overdue by {duration(now - item.due_at)}"
    first = item.due_at or item.expires_at
    if first is None:
        return ""
    word = "Due" if item.due_at else "Ends"
    if first - now < timedelta(days=1):
        return f"{word} in {duration(max(first - now, timedelta()))}"
    return f"{word} {first.day} {first:%B}" + (f" {first.year}" if first.year != now.year else "")
