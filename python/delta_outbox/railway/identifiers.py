"""Task identifiers are made by templates: data, so that every writer makes the same one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter

DEFAULT_IDENTIFIER = "{workflow}-{task}-{instance}-{visit}"
DEFAULT_INSTANCE = "{event_id}"
OF_TASKS = frozenset({"workflow", "task", "instance", "visit"})
"""What an identifier may use beside the fields of the start event."""


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

    def pattern(self, known: Mapping[str, str]) -> tuple[str | None, ...]:
        """Return what the template can make: characters, and None for any text.

        Args:
            known: fields whose value is fixed.
        """
        pattern: list[str | None] = []
        for literal, name, _, _ in Formatter().parse(self.text):
            pattern += literal
            if name is not None:
                pattern += known.get(name, (None,))
        return tuple(pattern)


def can_meet(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    """Say whether two patterns can make the same text.

    Args:
        one: characters, and None for any text.
        other: the same.
    """
    reached = _with_empty(one, other, {(0, 0)})
    seen: set[tuple[int, int]] = set()
    while reached:
        seen |= reached
        reached = _with_empty(one, other, _stepped(one, other, reached)) - seen
    return (len(one), len(other)) in seen


def _with_empty(
    one: tuple[str | None, ...], other: tuple[str | None, ...], places: Iterable[tuple[int, int]]
) -> set[tuple[int, int]]:
    found, todo = set(places), list(places)
    while todo:
        i, j = todo.pop()
        more = [(i + 1, j)] if i < len(one) and one[i] is None else []
        more += [(i, j + 1)] if j < len(other) and other[j] is None else []
        for place in more:
            if place not in found:
                found.add(place)
                todo.append(place)
    return found


def _stepped(
    one: tuple[str | None, ...], other: tuple[str | None, ...], places: Iterable[tuple[int, int]]
) -> set[tuple[int, int]]:
    stepped = set()
    for i, j in places:
        if i == len(one) or j == len(other):
            continue
        a, b = one[i], other[j]
        if a is None or b is None or a == b:
            stepped.add((i + (a is not None), j + (b is not None)))
    return stepped
