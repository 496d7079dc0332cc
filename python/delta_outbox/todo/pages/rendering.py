"""Templates and files of the pages. What stands in data is text on a page, never markup."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from delta_outbox.todo.pages import wording
from delta_outbox.todo.pages.fields import Field, Kind, human
from delta_outbox.todo.pages.form import name_of

_HERE: Final = Path(__file__).parent
_STYLES: Final = (_HERE / "static" / "todo.css").read_bytes()
_STYLES_NAME: Final = f"todo-{hashlib.sha256(_STYLES).hexdigest()[:12]}.css"

# By name in their addresses: the type and the content.
STATIC: Final = {
    _STYLES_NAME: ("text/css; charset=utf-8", _STYLES),
    "icon.svg": ("image/svg+xml", (_HERE / "static" / "icon.svg").read_bytes()),
}


def anchor(one: Field) -> str:
    """Return the id of a field on the page."""
    return f"field-{hashlib.sha256(one.pointer.encode()).hexdigest()[:12]}"


def hint(one: Field) -> str:
    """Return what the page says of how to fill in a field, empty if the field shows it."""
    if one.kind in (Kind.CHOICE, Kind.GROUP, Kind.FIXED) or one.input in ("date", "time"):
        return ""
    if one.kind is Kind.DATE_TIME:
        return "In UTC."
    return f"{human_start(one.rule)}." if one.rule else ""


def human_start(text: str) -> str:
    """Return a text with a capital letter at its start."""
    return text[:1].upper() + text[1:]


class Templates:
    """The templates of the pages."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            hint_of=hint,
            human=human,
            id_of=anchor,
            name_of=name_of,
            plain=wording.plain,
            stylesheet=f"/todo/static/{_STYLES_NAME}",
        )

    def render(self, template: str, **shown: Any) -> str:
        """Return a page.

        Args:
            template: its name.
            shown: what the template shows.
        """
        return self._environment.get_template(template).render(shown)
