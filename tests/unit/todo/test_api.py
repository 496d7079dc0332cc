"""What the API of items answers: to whom, with which status, and what it never says."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.todo.memory_items import ELSEWHERE, Office, item, office

from delta_outbox.core.errors import ChangeFeedGone, NotSynced, OutboxError, SequenceTaken
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.limits import MOST_BODY
from delta_outbox.workflow_engine.four_eyes import SamePerson
from delta_outbox.workflow_engine.item_answers import NotKnownYet
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer

REVIEW = "/items/orders/review"
GOOD = {"order": "o1", "send": True}


@pytest.fixture
def desk() -> Iterator[Office]:
    """Return an office with two open items of one type, and one of another."""
    with office() as opened:
        opened.items.add(item("review-o1"), item("review-o2"), item("payment-o1", task="payment"))
        yield opened


def answer(desk: Office, who: dict[str, str], data: Any = GOOD, task_id: str = "review-o1") -> Any:
    """Answer an item."""
    return desk.client.post(f"{REVIEW}/{task_id}/answer", json=data, headers=who)


def test_nobody_is_let_in_without_a_key(desk: Office) -> None:
    """Whoever sends no key, a wrong one or a half one is told nothing but that."""
    good = desk.key()["Authorization"]
    wrong = ["", "Basic YTpi", "Bearer", "Bearer x", good[:-1], good + "x", good.swapcase()]
    places = ["/items", REVIEW, f"{REVIEW}/review-o1", "/items/no/where", "/openapi.json"]
    for sent in wrong:
        for place in places:
            found = desk.client.get(place, headers={"Authorization": sent} if sent else {})
            assert (401, "Bearer") == (found.status_code, found.headers["WWW-Authenticate"])
            assert "UNAUTHORIZED" == found.json()["error"]["code"]
    assert 401 == desk.client.post(f"{REVIEW}/review-o1/answer", json=GOOD).status_code
    assert [] == desk.items.calls


def test_items_are_listed_for_their_roles(desk: Office) -> None:
    """A list holds what whoever asks may answer: by due date, filtered, in pages."""
    desk.items.add(
        item("review-o3", due=timedelta(hours=2)), item("review-o4", due=timedelta(hours=-1))
    )
    who = desk.key()
    found = desk.client.get("/items", headers=who).json()
    ids = [one["task_id"] for one in found["items"]]
    assert ["review-o4", "review-o1", "review-o2", "review-o3"] == ids
    assert 4 == found["total"]

    def listed(**query: Any) -> list[str]:
        shown = desk.client.get("/items", headers=who, params=query).json()
        return [one["task_id"] for one in shown["items"]]

    assert ["review-o4"] == listed(overdue=True)
    assert ["review-o3"] == listed(text="O3")
    assert [] == listed(role="provider")
    assert ids == [*listed(limit=3, page=1), *listed(limit=3, page=2)]
    assert listed(limit=3, page=2) == listed(limit=3, page=9)
    assert [] == desk.client.get("/items", headers=desk.key("bob", "none")).json()["items"]


def hold(desk: Office, who: dict[str, str], verb: str, task_id: str = "review-o1") -> Any:
    """Take an item, or release it."""
    return desk.client.post(f"{REVIEW}/{task_id}/{verb}", headers=who)


def test_an_item_is_taken_and_given_back(desk: Office) -> None:
    """Who takes an item holds it, and everybody of its role sees that and may answer it all the
    same. What somebody else holds is neither taken nor given back, and whoever tries is told who
    that is; what is asked twice is told alike.
    """
    ann, bob = desk.key("ann"), desk.key("bob")
    mine = {"task_id": "review-o1", "assigned_to": "ann"}
    for _ in range(2):
        found = hold(desk, ann, "take")
        assert (200, mine) == (found.status_code, found.json())
    for verb in ("take", "release"):
        told = hold(desk, bob, verb)
        assert (409, "HELD_BY_ANOTHER") == (told.status_code, told.json()["error"]["code"])
        assert "ann" == told.json()["error"]["assigned_to"]
    assert "ann" == desk.client.get(f"{REVIEW}/review-o1", headers=bob).json()["assigned_to"]

    def listed(who: dict[str, str], held_by: str) -> list[tuple[str, str | None]]:
        shown = desk.client.get("/items", headers=who, params={"held_by": held_by}).json()
        return [(one["task_id"], one["assigned_to"]) for one in shown["items"]]

    assert [("review-o1", "ann")] == listed(ann, "me")
    assert [] == listed(bob, "me")
    assert [("review-o2", None)] == listed(ann, "nobody")
    assert 422 == desk.client.get("/items", headers=ann, params={"held_by": "ann"}).status_code
    for _ in range(2):
        assert {**mine, "assigned_to": None} == hold(desk, ann, "release").json()
    hold(desk, ann, "take")
    assert 200 == answer(desk, bob).status_code
    told = hold(desk, ann, "take")
    assert (410, "NOT_OPEN") == (told.status_code, told.json()["error"]["code"])


def test_an_item_shows_its_read_model(desk: Office) -> None:
    """An item is shown with its read model and its contract, to those who may answer it."""
    found = desk.client.get(f"{REVIEW}/review-o1", headers=desk.key())
    assert 200 == found.status_code
    assert {"order": "o1"} == found.json()["read_model"]
    assert "Review" == found.json()["contract"]["title"]
    assert ["opened"] == [one["what"] for one in found.json()["history"]]
    assert "no-store" == found.headers["Cache-Control"]


def test_forbidden_is_as_unknown(desk: Office) -> None:
    """What belongs to others, what is of another type and what is not there are told alike, byte
    by byte, and nothing is written; also where the code that shows an item fails.
    """
    provider, support = desk.key("pay", "provider"), desk.key()
    desk.items.undecided |= {"review-o2", "payment-o1"}
    assert 500 == desk.client.get(f"{REVIEW}/review-o2", headers=support).status_code
    asked = [
        (provider, "GET", f"{REVIEW}/review-o1"),
        (provider, "GET", f"{REVIEW}/review-o2"),
        (provider, "GET", f"{REVIEW}/review-none"),
        (provider, "GET", REVIEW),
        (support, "GET", f"{REVIEW}/review-none"),
        (support, "GET", f"{REVIEW}/payment-o1"),
        (support, "GET", "/items/no/where"),
        (provider, "POST", f"{REVIEW}/review-o1/answer"),
        (support, "POST", f"{REVIEW}/review-none/answer"),
        (support, "POST", f"{REVIEW}/payment-o1/answer"),
        (provider, "POST", f"{REVIEW}/review-o1/take"),
        (support, "POST", f"{REVIEW}/review-none/take"),
        (support, "POST", f"{REVIEW}/payment-o1/release"),
        (support, "POST", "/items/no/where/x/answer"),
        (support, "POST", "/answers/orders/payment"),
        (support, "POST", "/answers/no/where"),
    ]
    told = set()
    for who, method, place in asked:
        data = GOOD if method == "POST" else None
        found = desk.client.request(method, place, headers=who, json=data)
        told.add((found.status_code, found.text))
    assert {} == desk.items.holders
    assert 1 == len(told)
    assert 404 == next(iter(told))[0]
    assert [] == desk.items.recorded


def test_the_first_answer_counts(desk: Office) -> None:
    """An answer is told its outcome, the same again is told the same, another one who won."""
    ann, bob = desk.key(), desk.key("bob")
    first = answer(desk, ann)
    assert (200, {"task_id": "review-o1", "outcome": "yes", "is_repeat": False}) == (
        first.status_code,
        first.json(),
    )
    assert [("review-o1", "ann")] == desk.items.recorded
    again = answer(desk, bob)
    assert (200, "yes", True) == (
        again.status_code,
        again.json()["outcome"],
        again.json()["is_repeat"],
    )
    other = answer(desk, bob, {"order": "o1", "send": False})
    assert (409, "yes") == (other.status_code, other.json()["error"]["outcome"])
    assert [("review-o1", "ann")] == desk.items.recorded


def test_a_request_is_recognised_by_its_key(desk: Office) -> None:
    """An Idempotency-Key of a person stands for one request: used again with other data it is
    refused, and nothing is written.
    """
    ann, bob = desk.key(), desk.key("bob")
    assert 200 == answer(desk, {**ann, "Idempotency-Key": "k1"}).status_code
    assert answer(desk, {**ann, "Idempotency-Key": "k1"}).json()["is_repeat"]
    other = {"order": "o1", "send": False}
    refused = answer(desk, {**ann, "Idempotency-Key": "k1"}, other)
    assert (422, "KEY_USED_AGAIN") == (refused.status_code, refused.json()["error"]["code"])
    assert "yes" == refused.json()["error"]["outcome"]
    assert [("review-o1", "ann")] == desk.items.recorded
    assert 409 == answer(desk, {**ann, "Idempotency-Key": "k2"}, other).status_code
    assert 409 == answer(desk, {**bob, "Idempotency-Key": "k1"}, other).status_code
    assert 422 == answer(desk, {**ann, "Idempotency-Key": "k" * 201}, other).status_code


def test_late_is_told_and_on_record(desk: Office) -> None:
    """An answer to what is over is told so, and is on record."""
    desk.items.late.add("review-o1")
    assert 410 == answer(desk, desk.key()).status_code
    assert [("review-o1", "ann")] == desk.items.recorded


def test_an_answer_finds_its_item(desk: Office) -> None:
    """What a third party sends is about the item that its data names; unknown ones are told so."""
    who = desk.key("pay", "provider")
    sent = desk.client.post(
        "/answers/orders/payment", json={"order": "o1", "paid": True}, headers=who
    )
    assert (200, "payment-o1") == (sent.status_code, sent.json()["task_id"])
    early = desk.client.post(
        "/answers/orders/payment", json={"order": "o7", "paid": True}, headers=who
    )
    assert 404 == early.status_code


def test_what_is_about_no_item_is_passed_over(desk: Office) -> None:
    """Where `correlate` says that data is about none of ours, whoever sends it need not do so
    again, and nothing is on record.
    """
    who = desk.key("pay", "provider")
    data = {"order": ELSEWHERE, "paid": True}
    told = desk.client.post("/answers/orders/payment", json=data, headers=who)
    assert (202, {"task_id": None, "outcome": None}) == (told.status_code, told.json())
    assert [] == desk.items.recorded


def test_what_is_wrong_is_pointed_at_and_not_repeated(desk: Office) -> None:
    """An answer that breaks its contract is told where and which rule, nothing of what it holds."""
    data = {"order": "secret-1", "send": "secret-2", "parcels": [{"number": "secret-3"}]}
    found = answer(desk, desk.key(), data)
    assert 422 == found.status_code
    pointers = {one["pointer"] for one in found.json()["error"]["problems"]}
    assert {"/order", "/send", "/parcels/0/number"} == pointers
    assert "secret" not in found.text
    query = desk.client.get("/items", headers=desk.key(), params={"page": "secret-4"})
    assert (422, False) == (query.status_code, "secret" in query.text)
    assert [] == desk.items.recorded


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"\xff{}", "application/json", 422),
        (b"[]", "application/json", 422),
        (b'{"send": NaN}', "application/json", 422),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "application/json", 422),
        (b'{"a":' * 100_000, "application/json", 422),
        (b'{"a": "' + b"x" * MOST_BODY + b'"}', "application/json", 413),
    ],
)
def test_bodies_are_bounded(desk: Office, body: bytes, kind: str, status: int) -> None:
    """What is no JSON, is nested too deep or is too large reaches no item."""
    headers = {**desk.key(), **({"Content-Type": kind} if kind else {})}
    found = desk.client.post(f"{REVIEW}/review-o1/answer", content=body, headers=headers)
    assert status == found.status_code
    assert ["complete"] != [one.split()[0] for one in desk.items.calls]


def test_a_body_without_a_length_is_bounded(desk: Office) -> None:
    """A body in pieces is cut off where it becomes too large."""
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 64 * 1024
            yield b" " * (64 * 1024)

    headers = {**desk.key(), "Content-Type": "application/json"}
    found = desk.client.post(f"{REVIEW}/review-o1/answer", content=pieces(), headers=headers)
    assert 413 == found.status_code


def test_an_evil_pattern_holds_up_nobody(desk: Office) -> None:
    """A pattern that takes other engines for ever is judged at once."""
    began = time.monotonic()
    found = answer(desk, desk.key(), {"order": "a" * 58 + "!", "send": True})
    assert 422 == found.status_code
    assert time.monotonic() - began < 20  # seconds; Python's engine would take years


def test_who_asks_too_often_waits() -> None:
    """Each person has a rate, and is told when to come again; others are not held up."""
    with office(TodoSettings(rate_per_second=0.5)) as desk:
        ann, bob = desk.key(), desk.key("bob")
        assert 200 == desk.client.get("/items", headers=ann).status_code
        found = desk.client.get("/items", headers=ann)
        assert 429 == found.status_code
        assert 1 <= int(found.headers["Retry-After"]) <= 2
        assert 200 == desk.client.get("/items", headers=bob).status_code


def test_nothing_is_acknowledged_that_is_not_on_record() -> None:
    """While an answer is being written nobody is told that it counts: after `answer_seconds`
    whoever waits is told to ask again, and the same request then gets the true answer, also where
    no answer is ever written in time.
    """
    with office(TodoSettings(answer_seconds=1.0)) as desk:
        desk.items.add(item("review-o1"), item("review-o2"))
        may_go = threading.Event()

        def waits(what: str) -> None:
            if what.startswith("complete"):
                may_go.wait(10)

        desk.items.fails = waits
        who = desk.key()
        found = answer(desk, who)
        assert 503 == found.status_code
        assert "NOT_IN_TIME" == found.json()["error"]["code"]
        assert int(found.headers["Retry-After"]) >= 1
        # What has not begun when its time is over is never written.
        assert 503 == answer(desk, who, {"order": "o2", "send": True}, "review-o2").status_code
        may_go.set()
        while desk.thread._answers.begun:
            time.sleep(0.01)
        may_go.clear()
        again = answer(desk, who)
        may_go.set()
        assert 200 == again.status_code
        assert again.json()["is_repeat"]
        assert [("review-o1", "ann")] == desk.items.recorded


@pytest.mark.parametrize(
    "error",
    [
        SequenceTaken(writer="outbox/todo", number=1),
        NotSynced(what="a log", cause="the disk says no"),
        ChangeFeedGone(table="outbox.outbox_commands", version=1),
    ],
    ids=lambda error: error.code,
)
def test_an_outbox_in_trouble_is_not_the_callers_fault(desk: Office, error: OutboxError) -> None:
    """What others may mend is told to be sent again, for it may be on record; it is no success."""

    def fails(what: str) -> None:
        raise error

    desk.items.fails = fails
    who = desk.key()
    for told in (answer(desk, who), desk.client.get("/items", headers=who)):
        assert (503, "NOT_IN_TIME") == (told.status_code, told.json()["error"]["code"])
        assert int(told.headers["Retry-After"]) >= 1


def test_what_cannot_be_known_yet_is_asked_again(desk: Office) -> None:
    """An answer of which nobody can say yet whether it counts is neither a success nor too late."""
    desk.items.refuses = NotKnownYet("review-o1 cannot be ended just now.")
    told = answer(desk, desk.key())
    assert (503, "NOT_IN_TIME") == (told.status_code, told.json()["error"]["code"])


def test_four_eyes_are_told(desk: Office) -> None:
    """Who has answered another item of the instance is refused, and nothing is written."""
    desk.items.refuses = SamePerson("review-o1: another person must answer it.")
    told = answer(desk, desk.key())
    assert (403, "SAME_PERSON") == (told.status_code, told.json()["error"]["code"])
    assert not desk.items.recorded


def test_code_that_fails_is_no_answer(desk: Office, caplog: pytest.LogCaptureFixture) -> None:
    """Where the code of an author fails, nobody is shown its trace or its words; the item stays."""

    def fails(what: str) -> None:
        if what.startswith("complete"):
            raise UndecidedAnswer("review-o1: orders.review.decide: ValueError.")

    desk.items.fails = fails
    found = answer(desk, desk.key())
    assert (500, "UNDECIDED_ANSWER") == (found.status_code, found.json()["error"]["code"])
    assert "ValueError" not in found.text
    assert {} == desk.items.answers


def test_an_unforeseen_error_shows_nothing(desk: Office) -> None:
    """A bug of ours is told as such: no trace, no text of it."""

    def fails(what: str) -> None:
        raise RuntimeError("a secret of the process")

    desk.items.fails = fails
    found = desk.client.get(f"{REVIEW}/review-o1", headers=desk.key())
    assert found.status_code >= 500
    assert "secret" not in found.text


def test_what_nobody_foresaw_is_logged_without_its_text(
    desk: Office, caplog: pytest.LogCaptureFixture
) -> None:
    """Of an error that is none of ours the log has class and place: its text may hold what was
    sent.
    """
    with patch.object(desk.items, "correlated", side_effect=KeyError("secret-7")):
        told = desk.client.post("/answers/orders/review", json=GOOD, headers=desk.key())
    assert 500 == told.status_code
    (record,) = (one for one in caplog.records if one.message == "request_failed")
    assert re.fullmatch(r"KeyError \(.+, line \d+\)", vars(record)["error"])
    assert "secret" not in told.text


def test_people_at_once_are_told_one_outcome(desk: Office) -> None:
    """Of fifty answers at once to one item one counts, and everybody is told which."""
    who = [desk.key(f"p{number}") for number in range(50)]
    told: list[Any] = [None] * 50

    def run(number: int) -> None:
        told[number] = answer(desk, who[number], {"order": "o1", "send": number % 2 == 0})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = {
        one.json()["outcome"] if one.status_code == 200 else one.json()["error"]["outcome"]
        for one in told
    }
    assert 1 == len(outcomes)
    won = "yes" in outcomes
    assert {200 if (n % 2 == 0) == won else 409 for n in range(50)} == {200, 409}
    assert all(
        (one.status_code == 200) == ((number % 2 == 0) == won) for number, one in enumerate(told)
    )
    assert 1 == len(desk.items.recorded)


def test_the_document_has_the_contracts(desk: Office) -> None:
    """The OpenAPI document describes each answer by the contract of its type, without a reference
    to anywhere else.
    """
    found = desk.client.get("/openapi.json", headers=desk.key()).json()
    body = found["paths"]["/answers/orders/review"]["post"]["requestBody"]
    assert {"$ref": "#/components/schemas/orders.review"} == body["content"]["application/json"][
        "schema"
    ]
    schemas = found["components"]["schemas"]
    assert {"order", "send", "parcels"} == {*schemas["orders.review"]["properties"]}
    references = {
        line.split('"')[3]
        for line in json.dumps(found, indent=0).splitlines()
        if line.strip().startswith('"$ref"')
    }
    assert all(one.startswith("#/components/schemas/") for one in references)
    assert {one.rsplit("/", 1)[1] for one in references} <= {*schemas}


def test_the_document_is_of_what_one_may_answer(desk: Office) -> None:
    """Who has no role of a type learns nothing of it from the OpenAPI document either."""

    def named(*roles: str) -> tuple[set[str], set[str]]:
        found = desk.client.get("/openapi.json", headers=desk.key("ann", *roles)).json()
        schemas = {one for one in found["components"]["schemas"] if one.startswith("orders.")}
        return {path.split("/")[3] for path in found["paths"] if path.count("/") > 2}, schemas

    both = named("support", "provider")
    assert {"review", "payment"} <= both[0]
    paths, schemas = named("support")
    assert "payment" not in paths
    assert schemas
    assert all(one.split(".")[1] != "payment" for one in schemas)
    assert (set(), set()) == named("nobody")


def test_liveness_needs_no_key(desk: Office) -> None:
    """Whoever watches the server may ask whether it lives, and learns nothing else."""
    assert {"status": "ok"} == desk.client.get("/healthz").json()
