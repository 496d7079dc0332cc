"""What the API answers, as its OpenAPI document describes it, beside the values of the desk."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from delta_outbox.workflow_engine.item_history import Happening


class Detail(BaseModel):
    """An item: what whoever answers may see, and what an answer must look like."""

    task_id: str
    workflow: str
    instance: str
    task: str
    title: str
    visit: int
    state: str = Field(description="opening, open, answered, ending, or ended.")
    outcome: str | None
    opened_at: datetime
    due_at: datetime | None
    expires_at: datetime | None
    roles: list[str]
    assigned_to: str | None = Field(description="Who takes care of it.")
    history: list[Happening]
    read_model: dict[str, Any]
    outcomes: list[str]
    contract: dict[str, Any]


class Noted(BaseModel):
    """What changes nothing: it is about no item, or on record beside the answer that counts."""

    task_id: str | None = Field(description="Of the item that it is about, if any.")
    outcome: str | None = Field(description="Of the answer that counts, if there is one.")


class Wrong(BaseModel):
    """Where an answer breaks its contract."""

    pointer: str = Field(description="A JSON pointer (RFC 6901); empty for the whole answer.")
    rule: str


class Error(BaseModel):
    """What is wrong, and what to do."""

    code: str
    message: str
    remedy: str
    outcome: str | None = Field(default=None, description="Of the answer that counts.")
    assigned_to: str | None = Field(default=None, description="Who holds the item (409).")
    problems: list[Wrong] | None = Field(default=None, description="Of the answer (422).")


class Failure(BaseModel):
    """The body of every answer that is no success."""

    error: Error
