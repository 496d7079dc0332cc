"""Task identifiers are made by templates: data, so that every writer makes the same one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Final

DEFAULT_IDENTIFIER = "{workflow}-{task}-{instance}-{visit}"
DEFAULT_INSTANCE = "{event_id}"
OF_TASKS = frozenset({"workflow", "task", "instance", "visit"})
"""What an identifier may use beside the fields of the start event."""
PLAIN_TYPES: Final = (str, int, "str", "int")
"""Types of fields whose text is the same for every reader."""


# twin: macros/workflows/workflow_template.sql::workflow_template
@dataclass(frozen=True, slots=True)
class Template:
    """Text with fields in braces, such as `refund-{order_id}`.

    Args:
        text: as it was written; a brace that is meant is doubled.
    """

    text: str

    @property
    def problem(self) -> str | None:
        """Return what is wrong with the text, None if it is well formed."""
        try:
            parts = list(Formatter().parse(self.text))
        except ValueError as error:
            return f"it is no template: {error}"
        for _, name, spec, conversion in parts:
            if name is None:
                continue
            if not name.isidentifier():
                return f"'{{{name}}}' is not the name of a field"
            if spec or conversion:
                return f"'{{{name}}}' has a format; a field stands in it as it is"
        return None if self.text.strip() else "it is empty"

    @property
    def fields(self) -> frozenset[str]:
        """Return the names in braces."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.text) if name)

    def fill(self, values: Mapping[str, object]) -> str:
        """Return the text with its fields filled in.

        Args:
            values: by name of the field.
        """
        return self.text.format_map(values)

    def pieces(self, known: Mapping[str, str]) -> list[str]:
        """Return the texts before, between and after the fields, each of which may be any text.

        Args:
            known: fields whose value is fixed.
        """
        pieces = [""]
        for literal, name, _, _ in Formatter().parse(self.text):
            pieces[-1] += literal
            if name is None:
                continue
            if name in known:
                pieces[-1] += known[name]
            else:
                pieces.append("")
        return pieces


def task_identifier(
    identifier: str,
    values: Mapping[str, object],
    *,
    workflow: str,
    task: str,
    instance: str,
    visit: int,
) -> str:
    """Return the identifier of a task.

    Args:
        identifier: its template.
        values: of the fields of the start event.
        workflow: to which it belongs.
        task: its name.
        instance: of the workflow.
        visit: how often the instance has come to the task, this time included.
    """
    return Template(identifier).fill(
        {**values, "workflow": workflow, "task": task, "instance": instance, "visit": visit}
    )


# twin: macros/workflows/workflow_templates_meet.sql::workflow_templates_meet
def can_meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Say whether two templates can make the same text.

    Two that have fields can if one begins as the other does and one ends as the other does: what
    stands between is taken up by a field of the other.

    Args:
        one: its pieces.
        other: its pieces.
    """
    for text, pieces in ((one, other), (other, one)):
        if len(text) == 1:
            form = "[\\s\\S]*".join(map(re.escape, pieces))
            return re.fullmatch(form, text[0]) is not None
    begin = one[0].startswith(other[0]) or other[0].startswith(one[0])
    return begin and (one[-1].endswith(other[-1]) or other[-1].endswith(one[-1]))
