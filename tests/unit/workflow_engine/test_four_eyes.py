"""Four eyes: who may not answer an item."""

from __future__ import annotations

import pytest

from delta_outbox.workflow_engine.four_eyes import SamePerson, another_person

ANSWERED = {"prepare": {"dan"}, "propose": {"ann", "Bob Bold"}}


@pytest.mark.parametrize("actor", ["ann", "ANN", " ann ", "bob bold"])
def test_who_has_answered_a_named_task_may_not(actor: str) -> None:
    """Whoever has answered a named task is refused, at whichever visit and however their name is
    written; the message names the task, and the remedy says who may.
    """
    with pytest.raises(SamePerson, match=r"approve-1: .* 'propose' of the same instance") as error:
        another_person("approve-1", actor, not_by=["propose"], answered=ANSWERED)
    assert "somebody else" in error.value.remedy


@pytest.mark.parametrize("actor", ["cleo", "dan", "an"])
def test_everybody_else_may(actor: str) -> None:
    """Who has answered another task, or none, may answer; so may anybody where none is named."""
    another_person("approve-1", actor, not_by=["propose"], answered=ANSWERED)
    another_person("approve-1", "ann", not_by=["propose"], answered={})
    another_person("approve-1", "ann", not_by=[], answered=ANSWERED)
