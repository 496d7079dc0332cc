"""A contract as a form, and what was filled in as an answer."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from delta_outbox.todo.pages.fields import Kind
from delta_outbox.todo.pages.form import Form, is_filled_in_by

# A browser sends a line break as two characters, and the form makes one of them.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)
FULL_TEXTS = TEXTS.filter(str.strip)
LINE_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=9, min_size=1
).filter(str.strip)
WHOLE = st.integers(-(10**20), 10**20)
REAL = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
VALUES = st.lists(FULL_TEXTS | WHOLE | st.booleans(), min_size=1, max_size=9, unique_by=json.dumps)
INSTANTS = st.datetimes()
ABSENT = object()

Pair = tuple[dict[str, Any], st.SearchStrategy[Any]]


def _scalars() -> st.SearchStrategy[Pair]:
    """Schemas of scalars, each with what is never empty of it."""
    return st.one_of(
        st.just(({"type": "string", "minLength": 1}, FULL_TEXTS)),
        st.just(({"type": "integer"}, WHOLE)),
        st.just(({"type": "number"}, REAL)),
        st.just(({"type": "boolean"}, st.booleans())),
        st.just(({"type": "string", "format": "date"}, st.dates().map(date.isoformat))),
        st.just(
            (
                {"type": "string", "format": "date-time"},
                INSTANTS.map(lambda at: f"{at.isoformat()}Z"),
            )
        ),
        VALUES.map(lambda values: ({"enum": values}, st.sampled_from(values))),
    )


def _arrays() -> st.SearchStrategy[Pair]:
    """Schemas of arrays that are never empty: those that a line each, or boxes can show."""
    lines = st.sampled_from(
        [
            ({"type": "string", "minLength": 1}, LINE_TEXTS),
            ({"type": "integer"}, WHOLE),
            ({"type": "number"}, REAL),
        ]
    ).map(
        lambda pair: (
            {"type": "array", "items": pair[0], "minItems": 1},
            st.lists(pair[1], min_size=1, max_size=4),
        )
    )
    boxes = VALUES.map(
        lambda values: (
            {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 1},
            st.sets(st.integers(0, len(values) - 1), min_size=1).map(
                lambda chosen: [values[place] for place in sorted(chosen)]
            ),
        )
    )
    return lines | boxes


def _nullable(pair: Pair) -> Pair:
    return {"anyOf": [pair[0], {"type": "null"}]}, st.none() | pair[1]


def _objects(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    @st.composite
    def made(draw: st.DrawFn) -> Pair:
        names = draw(st.lists(FULL_TEXTS, min_size=1, max_size=4, unique=True))
        properties: dict[str, Any] = {}
        values: dict[str, st.SearchStrategy[Any]] = {}
        required = []
        for name in names:
            pair = draw(inner)
            form = draw(st.sampled_from(["required", "optional", "nullable"]))
            schema, data = _nullable(pair) if form == "nullable" else pair
            properties[name] = schema
            values[name] = data
            if form == "optional":
                values[name] = st.just(ABSENT) | data
            else:
                required.append(name)
        objects = st.fixed_dictionaries(values).map(
            lambda found: {key: one for key, one in found.items() if one is not ABSENT}
        )
        schema = {"type": "object", "properties": properties, "required": required}
        return schema, objects.filter(_says_something)

    return made()


def _says_something(data: Any) -> bool:
    """Say whether anything is filled in: an object of which nothing is, is none."""
    if isinstance(data, dict):
        return any(map(_says_something, data.values()))
    return data is not None


WITH_JSON = st.just(({"type": "object"}, st.dictionaries(TEXTS, JSON, max_size=3)))
SCHEMAS = st.deferred(
    lambda: _objects(
        st.one_of(_scalars(), _arrays(), WITH_JSON, _objects(st.one_of(_scalars(), _arrays())))
    )
)


@given(pair=SCHEMAS, draw=st.data())
def test_an_answer_comes_back_as_it_went_into_the_form(pair: Pair, draw: st.DataObject) -> None:
    """Whatever contract a form shows, it holds its answers, and reads them as they were."""
    schema, answers = pair
    form = Form(schema)
    answer = draw.draw(answers)
    texts = form.texts(answer)
    sent = {key: [text.replace("\n", "\r\n") for text in given] for key, given in texts.items()}
    filled = form.read(sent)
    assert ({}, answer) == (filled.problems, filled.data)


@given(
    schema=st.recursive(
        JSON,
        lambda inner: st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["object", "array", "string", "number", "null", ["null"]]),
                "properties": st.dictionaries(TEXTS, inner, max_size=3) | JSON,
                "items": inner,
                "anyOf": st.lists(inner, max_size=3) | JSON,
                "allOf": st.lists(inner, max_size=2) | JSON,
                "enum": JSON,
                "$ref": st.sampled_from(["#", "#/properties", "https://elsewhere.example", "#/a"]),
                "required": JSON,
                "default": JSON,
                "minimum": JSON,
                "maxLength": JSON,
                "title": JSON,
            },
        ),
        max_leaves=8,
    ),
    texts=st.lists(TEXTS, max_size=3),
)
def test_no_contract_and_no_text_breaks_a_form(schema: Any, texts: list[str]) -> None:
    """Whatever stands in a contract, it is a form; whatever is filled in is an answer or a
    problem of a field.
    """
    form = Form(schema if isinstance(schema, dict) else {"properties": schema, "type": "object"})
    form.texts({})
    form.known({"a": texts, "": schema})
    filled = form.read({f"data{one.pointer}": texts for one in form.all_fields()})
    assert isinstance(filled.data, dict)
    assert {*filled.problems} <= {one.pointer for one in form.all_fields()} | {""}


class Colour(StrEnum):
    LIGHT_BLUE = "light_blue"
    RED = "red"


class Address(BaseModel):
    street: str = Field(min_length=1)
    house: int | None = None


class Everything(BaseModel):
    """What an author may ask for."""

    finding: Literal["agreed_to_cancel", "payment_confirmed"] = Field(title="What was found?")
    kind: Literal["review"]
    colour: Colour | None = None
    amount: Decimal = Field(description="In euros.")
    share: float = Field(ge=0, lt=1)
    pieces: int = Field(ge=1, le=10, default=1)
    seen_at: datetime
    day: date | None = None
    is_urgent: bool
    note: str = Field(default="", max_length=500)
    tags: list[str] = []
    colours: set[Colour] = set()
    address: Address
    other_address: Address | None = None
    anything: dict[str, int] = {}


SCHEMA = Everything.model_json_schema()
GOOD = {
    "data/finding": ['"payment_confirmed"'],
    "data/amount": ["12.50"],
    "data/share": [" 0.5 "],
    "data/pieces": ["3"],
    "data/seen_at": ["2026-11-28T14:30"],
    "data/is_urgent": ["false"],
    "data/tags": ["one\r\n\r\ntwo"],
    "data/colours": ['"red"'],
    "data/address/street": ["Long Lane"],
}


def test_a_model_of_pydantic_is_a_form() -> None:
    """Every type of an author's model has a field that fits, and what is filled in passes the
    model.
    """
    form = Form(SCHEMA)
    kinds = {one.pointer: one.kind for one in form.all_fields()}
    assert kinds == {
        "/finding": Kind.CHOICE,
        "/kind": Kind.FIXED,
        "/colour": Kind.CHOICE,
        "/amount": Kind.TEXT,
        "/share": Kind.NUMBER,
        "/pieces": Kind.INTEGER,
        "/seen_at": Kind.DATE_TIME,
        "/day": Kind.TEXT,
        "/is_urgent": Kind.CHOICE,
        "/note": Kind.TEXT,
        "/tags": Kind.LINES,
        "/colours": Kind.CHOICES,
        "/address": Kind.GROUP,
        "/address/street": Kind.TEXT,
        "/address/house": Kind.INTEGER,
        "/other_address": Kind.GROUP,
        "/other_address/street": Kind.TEXT,
        "/other_address/house": Kind.INTEGER,
        "/anything": Kind.JSON,
    }
    filled = form.read(GOOD)
    assert not filled.problems
    answer = Everything.model_validate(filled.data)
    assert answer == Everything(
        finding="payment_confirmed",
        kind="review",
        amount=Decimal("12.50"),
        share=0.5,
        pieces=3,
        seen_at=datetime(2026, 11, 28, 14, 30, tzinfo=UTC),
        is_urgent=False,
        tags=["one", "two"],
        colours={Colour.RED},
        address=Address(street="Long Lane"),
    )


def test_labels_are_for_people() -> None:
    """A title that the author has written stands as it is; names of programs become words."""
    fields = {one.pointer: one for one in Form(SCHEMA).all_fields()}
    assert "What was found?" == fields["/finding"].title
    assert ["Agreed to cancel", "Payment confirmed"] == [
        one.label for one in fields["/finding"].choices
    ]
    assert "Seen at" == fields["/seen_at"].title
    assert "In euros." == fields["/amount"].description


@pytest.mark.parametrize(
    ("pointer", "text", "said"),
    [
        ("/finding", "", "Choose one of these."),
        ("/finding", '"cancel"', "Give one of these."),
        ("/share", "", "Give a number of at least 0 and below 1."),
        ("/share", "1", "Give a number of at least 0 and below 1."),
        ("/share", "nan", "Give a number of at least 0 and below 1."),
        ("/pieces", "2.5", "Give a whole number from 1 to 10."),
        ("/pieces", "11", "Give a whole number from 1 to 10."),
        ("/seen_at", "soon", "Give a date and a time in UTC, such as 2026-11-28T14:30."),
        ("/note", "x" * 501, "Give at most 500 characters."),
        ("/address/street", "", "Give at least 1 character."),
        ("/anything", "{", "Give JSON."),
    ],
)
def test_a_problem_says_what_to_do(pointer: str, text: str, said: str) -> None:
    """What is wrong is said of the field where it is wrong, and of no other."""
    filled = Form(SCHEMA).read({**GOOD, f"data{pointer}": [text]})
    assert {pointer: said} == filled.problems


def test_a_read_model_fills_in_what_it_knows() -> None:
    """Values of the read model stand in the fields of their names, if they are of their types."""

    class Answer(BaseModel):
        order: str
        attempt: int
        note: str = "none"
        choice: Literal["a", "b"]
        inner: Address

    form = Form(Answer.model_json_schema())
    known = form.known(
        {"order": "A-1", "attempt": "first", "note": "old", "choice": "c", "inner": {}, "more": 1}
    )
    assert {"order": "A-1", "note": "old"} == known
    assert ["A-1"] == form.texts(known)["data/order"]
    assert ["order"] == [one.key for one in form.fields if is_filled_in_by(one, known)]
    assert {"attempt": 3} == form.known({"attempt": 3, "order": None})
    assert {} == form.known({"attempt": True, "order": 3})


def test_a_deep_problem_is_shown_at_the_nearest_field() -> None:
    """A place without a field of its own belongs to the field that holds it."""
    form = Form(SCHEMA)
    assert ["/anything", "/tags", "/address/street"] == [
        getattr(form.field_at(place), "pointer", None)
        for place in ("/anything/a/b", "/tags/1", "/address/street")
    ]
    assert form.field_at("/unheard") is None


def test_a_contract_that_contains_itself_ends() -> None:
    """Where a contract refers to itself, the rest is JSON."""

    class Part(BaseModel):
        name: str
        parts: list[Part] = []
        inner: Part | None = None

    Part.model_rebuild(_types_namespace={"Part": Part})
    kinds = {one.pointer: one.kind for one in Form(Part.model_json_schema()).all_fields()}
    assert Kind.JSON == kinds["/parts"]
    assert {"/name", "/parts", "/inner"} <= {*kinds}
