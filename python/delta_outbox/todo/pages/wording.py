"""What pages say of items: times, groups, who holds them, and what came of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from delta_outbox.todo.pages.fields import human
from delta_outbox.workflow_engine.four_eyes import NotNamed, SamePerson, is_same_person

if TYPE_CHECKING:
    from delta_outbox.todo.desk import ItemSummary
    from delta_outbox.todo.pages.sessions import Receipt

HOME: Final = "/todo"
ITEM_PATH: Final = "/todo/item"
TAKE_PATH: Final = "/todo/item/take"
RELEASE_PATH: Final = "/todo/item/release"
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
        holder: who takes care of it, empty for nobody.
    """

    address: str
    title: str
    about: str
    mark: str
    holder: str


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Who takes care of an item, and what can be done about that.

    Args:
        text: a sentence.
        action: the address that a form is sent to; empty: nothing can be done.
        button: what its button says.
    """

    text: str
    action: str = ""
    button: str = ""


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
NOT_NAMED: Final = Told(
    look="bad",
    heading="Somebody must sign in to answer this",
    text="Two different people must look at it, so a link is not enough. Your answer is not on "
    "record.",
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
SEND_AGAIN: Final = Note(
    heading="Your answer could not be taken yet",
    text="Nothing of it is lost. Send it again in a moment, as it is.",
    link="Send again",
)
# The same for what is none, what is another's, and what is over for who has a link.
NOT_FOUND: Final = Note(
    heading="There is nothing here", text="The address is wrong, or what it led to is closed."
)


def refused(error: SamePerson) -> Told:
    """Return what is said to whoever may not answer an item because of four eyes.

    Args:
        error: why.
    """
    return NOT_NAMED if isinstance(error, NotNamed) else SAME_PERSON


def too_often(seconds: int) -> Note:
    """Return what is said to whoever asks too often.

    Args:
        seconds: until the next page.
    """
    return Note(
        heading="Too many pages at once",
        text=f"Your address, or your key, has asked for many pages. Try again in {seconds} s.",
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


def groups(
    items: Iterable[ItemSummary], now: datetime, name: str
) -> Iterator[tuple[str, Sequence[Line]]]:
    """Yield the groups of a list, each with its heading, in the order of the items.

    Args:
        items: by due date.
        now: the moment, in UTC.
        name: of the person who looks at it.
    """
    for heading, some in groupby(items, lambda item: _group(item, now)):
        yield heading, [_line(item, now, name) for item in some]


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
            case "before":
                return Told(
                    look="good",
                    heading="Your first answer counts",
                    text=f"It had arrived. {outcome} What you have changed since changes nothing.",
                )
            case "faster":
                return Told(
                    look="bad",
                    heading="Somebody was faster",
                    text=f"Another answer counts. {outcome} Yours changes nothing.",
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


def taken_by(holder: str) -> Told:
    """Return what is told whoever takes what somebody else holds.

    Args:
        holder: who holds it.
    """
    return Told(
        look="bad",
        heading="Somebody else takes care of this",
        text=f"{holder} has taken it. You may answer it all the same.",
    )


def holding(document: Mapping[str, Any], name: str) -> Holding:
    """Return who takes care of an open item.

    Args:
        document: as `Items.show` returns it.
        name: of the person who looks at it.
    """
    holder, query = document["assigned_to"], urlencode({"id": document["task_id"]})
    if holder is None:
        text, action = "Nobody takes care of this yet.", f"{TAKE_PATH}?{query}"
        return Holding(text=text, action=action, button="Take it")
    if is_same_person(holder, name):
        text, action = "You take care of this.", f"{RELEASE_PATH}?{query}"
        return Holding(text=text, action=action, button="Give it back")
    return Holding(text=f"{holder} takes care of this. You may answer it all the same.")


def happenings(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what has happened to an item: for each, when, and a few words.

    Args:
        document: as `Items.show` returns it.
    """
    return [
        (moment(datetime.fromisoformat(one["at"])), _happening(one)) for one in document["history"]
    ]


def _happening(one: Mapping[str, Any]) -> str:
    by = one["by"]
    outcome = f": {human(one['outcome'])}" if one["outcome"] else ""
    match one["what"]:
        case "taken":
            return f"Taken by {by}"
        case "released":
            return f"Given back by {by}"
        case "assigned":
            return f"Given to {one['to']} by {by}"
        case "extended":
            return f"Extended by {by}, until {moment(datetime.fromisoformat(one['until']))}"
        case "answered":
            return f"Answered by {by}{outcome}"
        case "answered_late":
            return f"Answered too late by {by}"
        case "cancelled":
            return f"Cancelled by {by}"
    return f"{human(one['what'])}{outcome}"


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


def _line(item: ItemSummary, now: datetime, name: str) -> Line:
    holder = item.assigned_to or ""
    return Line(
        address=item_address(item.task_id),
        title=item.title,
        about=f"{item.instance} · {human(item.workflow)}",
        mark=_mark(item, now),
        holder="you" if is_same_person(holder, name) else holder,
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
