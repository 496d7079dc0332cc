"""Four eyes: whoever has answered one item of an instance may not answer another one of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from delta_outbox.core.errors import OutboxError


class SamePerson(OutboxError):
    """Four eyes are asked for, and this person has answered before; nothing was written."""

    code = "SAME_PERSON"
    remedy = "Let somebody else answer it who has its role."


class NotNamed(SamePerson):
    """Four eyes are asked for, and who answers is no person: a link, or a third party."""

    code = "NOT_NAMED"
    remedy = "Let a person answer it who signs in, or has an API key or a token."

    def __init__(self, task_id: str) -> None:
        """Name the item."""
        super().__init__(f"{task_id}: a person with a name must answer it (`not_by`).")


def is_same_person(name: str, other: str) -> bool:
    """Say whether two names are of one person. Capitals do not matter: names come from keys, tokens
    and command lines, which write one in several ways.

    Args:
        name: of somebody.
        other: of somebody.
    """
    return name.strip().casefold() == other.strip().casefold()


def another_person(
    task_id: str, actor: str, *, not_by: Collection[str], answered: Mapping[str, Collection[str]]
) -> None:
    """Demand that none of the named tasks was answered by the person who answers now.

    Args:
        task_id: of the item.
        actor: who answers it.
        not_by: names of the tasks whose answerers may not (`ToDo.not_by`).
        answered: by name of a task of the instance, who has answered it, each visit of it.

    Raises:
        SamePerson: this person has answered one of them.
    """
    for task in sorted(not_by):
        if any(is_same_person(actor, one) for one in answered.get(task, ())):
            raise SamePerson(
                f"{task_id}: another person than {actor!r} must answer it, who has answered "
                f"{task!r} of the same instance (`not_by`)."
            )
