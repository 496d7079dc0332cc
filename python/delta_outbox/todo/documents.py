"""What the API answers, as its OpenAPI document describes it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class Summary(BaseModel):
    """An open item in a list."""

    task_id: str
    workflow: str
    instance: str
    task: str
    title: str
    visit: int
    roles: list[str]
    opened_at: datetime
    due_at: datetime | None
    expires_at: datetime | None
    is_overdue: bool


class Page(BaseModel):
    """A page of open items: those first that are due first."""

    items: list[Summary]
    page: int
    pages: int
    total: int
    is_cut: bool = Field(description="More items are open than are listed.")


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
    read_model: dict[str, Any]
    outcomes: list[str]
    contract: dict[str, Any]


class Told(BaseModel):
    """What came of an answer that is on record and counts."""

    task_id: str
    outcome: str
    is_repeat: bool = Field(description="The same answer was on record already.")


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
    problems: list[Wrong] | None = Field(default=None, description="Of the answer (422).")


class Failure(BaseModel):
    """The body of every answer that is no success."""

    error: Error
