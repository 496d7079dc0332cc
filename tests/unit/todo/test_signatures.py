"""Third parties that sign what they send: whose answers count, and whose do not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook
from tests.unit.runtime.settings_files import load, refusal
from tests.unit.todo.memory_items import ELSEWHERE, Office, item, office

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import SignatureSettings, TodoSettings

PLACE = "/answers/orders/payment"
OLD, NEW, STRANGE = (
    "whsec_" + base64.b64encode(bytes([number]) * 24).decode() for number in (1, 2, 3)
)
PAID = {"id": "evt_1", "order": "o1", "paid": True}

Sign = Callable[..., Mapping[str, str]]


def standard(body: bytes, *secrets: str, age: float = 0, id_: str = "msg_1") -> Mapping[str, str]:
    """Sign as the reference implementation of Standard Webhooks does."""
    at = datetime.now(UTC) - timedelta(seconds=age)
    signed = [Webhook(one).sign(id_, at, body.decode()) for one in secrets]
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signed),
    }


def stripe(body: bytes, *secrets: str, age: float = 0) -> Mapping[str, str]:
    """Sign as Stripe describes it."""
    at = int(datetime.now(UTC).timestamp() - age)
    signed = f"{at}.".encode() + body
    found = [hmac.new(one.encode(), signed, hashlib.sha256).hexdigest() for one in secrets]
    return {"Stripe-Signature": ",".join([f"t={at}", *(f"v1={one}" for one in found), "v0=ab"])}


def plain(body: bytes, *secrets: str, age: float = 0) -> Mapping[str, str]:
    """Sign as many do, in a header of their own."""
    del age
    found = [hmac.new(one.encode(), body, hashlib.sha256).hexdigest() for one in secrets]
    return {"X-Hub-Signature-256": ",".join(f"sha256={one}" for one in found)}


SIGN: Mapping[str, Sign] = {"standard": standard, "stripe": stripe, "hmac": plain}
HMAC: Mapping[str, Any] = {"header": "x-hub-signature-256", "prefix": "sha256="}


def settings(scheme: str, **changed: Any) -> TodoSettings:
    """Return settings by which the type `payment` has a scheme."""
    own = HMAC if scheme == "hmac" else {}
    one = SignatureSettings(scheme=scheme, person="the bank", secrets=(NEW, OLD), **own)
    made = {"orders/payment": replace(one, **changed)}
    return TodoSettings(signatures=made, rate_per_second=10_000, answer_seconds=60)


@pytest.fixture(params=SIGN)
def scheme(request: pytest.FixtureRequest) -> str:
    """Return each scheme."""
    return str(request.param)


@pytest.fixture
def desk(scheme: str) -> Iterator[Office]:
    """Return an office whose payments are told by a third party that signs."""
    with office(settings(scheme)) as opened:
        opened.items.add(item("payment-o1", task="payment"), item("review-o1"))
        yield opened


def send(
    desk: Office, headers: Mapping[str, str], body: bytes | None = None, place: str = PLACE
) -> httpx.Response:
    """Send a message."""
    body = json.dumps(PAID).encode() if body is None else body
    sent = {"Content-Type": "application/json", **headers}
    raw = {name.encode(): value.encode("latin-1") for name, value in sent.items()}
    return desk.client.post(place, content=body, headers=httpx.Headers(raw))


def test_a_signature_is_as_good_as_a_key(desk: Office, scheme: str) -> None:
    """What a third party has signed is its answer; repeated, it is told the same."""
    body = json.dumps(PAID).encode()
    told = send(desk, SIGN[scheme](body, NEW), body)
    first = {"task_id": "payment-o1", "outcome": "yes", "is_repeat": False}
    assert (200, first) == (told.status_code, told.json())
    again = send(desk, SIGN[scheme](body, NEW, age=30), body)
    assert (200, {**first, "is_repeat": True}) == (again.status_code, again.json())
    assert [("payment-o1", "the bank")] == desk.items.recorded


@pytest.mark.parametrize("secrets", [(OLD,), (STRANGE, NEW), (OLD, NEW)])
def test_one_right_signature_is_enough(desk: Office, scheme: str, secrets: tuple[str, ...]) -> None:
    """While a secret is replaced, either side may know both: one of the signatures must be by one
    of the secrets.
    """
    body = json.dumps(PAID).encode()
    assert 200 == send(desk, SIGN[scheme](body, *secrets), body).status_code


def attacks(scheme: str) -> dict[str, tuple[Mapping[str, str], bytes]]:
    """Return headers and bodies that must not count."""
    body = json.dumps(PAID).encode()
    sign, other = SIGN[scheme], SIGN["standard" if scheme != "standard" else "stripe"]
    good = sign(body, NEW)
    altered = body.replace(b"true", b"false")
    found = {
        "no header": ({}, body),
        "another scheme": (other(body, NEW), body),
        "a wrong secret": (sign(body, STRANGE), body),
        "an altered body": (good, altered),
        "a body with a blank": (good, body + b" "),
        "no body": (good, b""),
        "empty headers": (dict.fromkeys(good, ""), body),
        "no ASCII": (dict.fromkeys(good, "\xe9,v1=\xe9"), body),
        "signed over nothing": (sign(b"", NEW), body),
        "a key that does not count": ({**good, "Authorization": "Bearer x"}, body),
    }
    if scheme == "standard":
        found["another id"] = ({**good, "webhook-id": "msg_2"}, body)
        found["another time"] = ({**good, "webhook-timestamp": "1"}, body)
        found["an endless time"] = ({**good, "webhook-timestamp": "9" * 9000}, body)
        found["another version"] = (
            {**good, "webhook-signature": good["webhook-signature"].replace("v1,", "v1a,")},
            body,
        )
        found["an id with a time"] = (standard(body, NEW, id_="a.1700000000"), body)
    if scheme == "stripe":
        header = good["Stripe-Signature"]
        found["a newer time"] = ({"Stripe-Signature": f"t=9999999999,{header}"}, body)
        found["another version"] = ({"Stripe-Signature": header.replace("v1=", "v0=")}, body)
        found["no time"] = ({"Stripe-Signature": header.partition(",")[2]}, body)
    if scheme == "hmac":
        header = good["X-Hub-Signature-256"]
        found["another algorithm"] = ({"X-Hub-Signature-256": f"sha1={header[7:]}"}, body)
    else:
        found["too old"] = (sign(body, NEW, age=310), body)
        found["too new"] = (sign(body, NEW, age=-310), body)
    return found


def test_attacks_are_refused(desk: Office, scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is not signed as agreed is told so in the same words, and reaches no item; neither
    a secret nor a signature is logged.
    """
    caplog.set_level(logging.DEBUG, logger="delta_outbox")
    told = set()
    for name, (headers, body) in attacks(scheme).items():
        found = send(desk, headers, body)
        assert 401 == found.status_code, name
        assert "Bearer" == found.headers["WWW-Authenticate"]
        if "Authorization" not in headers:
            told.add(found.text)
    assert 1 == len(told)
    assert [] == desk.items.calls
    assert any(one.message == "signature_refused" for one in caplog.records)
    logged = " ".join(str(vars(one)) for one in caplog.records if one.name.startswith("delta"))
    assert not [one for one in (NEW, OLD, "v1=", "v1,", "sha256=") if one in logged]


def test_a_signature_opens_one_type(desk: Office, scheme: str) -> None:
    """A signature says nothing for other types, for lists, or for an item by its identifier."""
    body = json.dumps({"order": "o1", "send": True}).encode()
    signed = SIGN[scheme](body, NEW)
    for place in ("/answers/orders/review", "/items/orders/payment/payment-o1/answer"):
        assert 401 == send(desk, signed, body, place).status_code
    assert 401 == desk.client.get("/items", headers=signed).status_code
    assert [] == desk.items.calls


def test_keys_go_on(desk: Office) -> None:
    """Whoever has a key may answer such an item by it, by the rules for people."""
    who = desk.key("pay", "provider")
    assert 200 == send(desk, who).status_code
    other = json.dumps({**PAID, "paid": False}).encode()
    assert 409 == send(desk, who, other).status_code
    assert 404 == send(desk, desk.key("ann", "support")).status_code
    assert [("payment-o1", "pay")] == desk.items.recorded


def test_what_changes_nothing_is_not_sent_again(desk: Office, scheme: str) -> None:
    """A message that does not count is on record, and one about nothing of ours is not; neither is
    repeated by a sender that repeats what is no success.
    """

    def noted(data: Mapping[str, Any]) -> tuple[int, Any]:
        body = json.dumps(data).encode()
        signed = {"id_": data["id"]} if scheme == "standard" else {}
        told = send(desk, SIGN[scheme](body, NEW, **signed), body)
        return told.status_code, told.json()

    assert (202, {"task_id": None, "outcome": None}) == noted({**PAID, "order": ELSEWHERE})
    assert [] == desk.items.recorded
    assert 200 == noted(PAID)[0]
    other = {"id": "evt_2", "order": "o1", "paid": False}
    assert (202, {"task_id": "payment-o1", "outcome": "yes"}) == noted(other)
    assert 2 * [("payment-o1", "the bank")] == desk.items.recorded
    desk.items.add(item("payment-o2", task="payment"))
    desk.items.late.add("payment-o2")
    late = {"id": "evt_3", "order": "o2", "paid": True}
    assert (202, {"task_id": "payment-o2", "outcome": None}) == noted(late)
    assert ("payment-o2", "the bank") == desk.items.recorded[-1]
    assert 404 == noted({**PAID, "order": "o3"})[0]


@pytest.mark.parametrize("scheme", ["standard", "stripe"])
def test_a_message_is_known_by_its_id(desk: Office, scheme: str) -> None:
    """A message that is sent again with something else beside it is a repeat, by its id."""
    for tried in range(3):
        body = json.dumps({**PAID, "pending_webhooks": tried}).encode()
        told = send(desk, SIGN[scheme](body, NEW), body)
        assert (200, tried > 0) == (told.status_code, told.json()["is_repeat"])
    assert 1 == len(desk.items.recorded)


def test_who_signs_is_bounded(desk: Office, scheme: str) -> None:
    """What is signed must be JSON, as the contract has it; its size is judged before all else."""
    for body, status in ((b"{", 422), (b'{"order": 7, "paid": true}', 422), (b" " * 2**21, 413)):
        assert status == send(desk, SIGN[scheme](body, NEW), body).status_code
    body = json.dumps(PAID).encode()
    signed = {**SIGN[scheme](body, NEW), "Content-Type": "text/plain"}
    assert 415 == send(desk, signed, body).status_code
    assert [] == desk.items.recorded


def test_who_signs_has_a_rate() -> None:
    """A third party that sends too fast is told when to go on; what is not signed costs it
    nothing.
    """
    body = json.dumps(PAID).encode()
    with office(replace(settings("stripe"), rate_per_second=0.5)) as desk:
        desk.items.add(item("payment-o1", task="payment"))
        assert [401] * 3 == [send(desk, stripe(body, STRANGE)).status_code for _ in range(3)]
        assert 200 == send(desk, stripe(body, NEW)).status_code
        assert 429 == send(desk, stripe(body, NEW)).status_code


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_plain_signatures_have_forms(algorithm: str) -> None:
    """A plain HMAC may be base64, by another algorithm, and without a prefix."""
    body = json.dumps(PAID).encode()
    made = settings("hmac", encoding="base64", algorithm=algorithm, header="X-Sign", prefix="")
    digest = hmac.new(OLD.encode(), body, algorithm).digest()
    with office(made) as desk:
        desk.items.add(item("payment-o1", task="payment"))
        assert 401 == send(desk, {"X-Sign": digest.hex()}).status_code
        assert 200 == send(desk, {"X-Sign": base64.b64encode(digest).decode()}).status_code


def test_settings_of_signatures_are_read(tmp_path: Path) -> None:
    """A table names the type; secrets come from the environment and are shown nowhere."""
    text = (
        '[todo.signatures."orders/payment"]\nscheme = "stripe"\nperson = "stripe"\n'
        'secrets = ["${NEW}", "${OLD}"]\n'
    )
    found = load(tmp_path, text, NEW=NEW, OLD=OLD).todo.signatures
    expected = SignatureSettings(scheme="stripe", person="stripe", secrets=(NEW, OLD))
    assert {"orders/payment": expected} == found
    assert NEW not in repr(found)


def test_a_secret_is_missed_where_signatures_are_checked(tmp_path: Path) -> None:
    """Other commands need no secret of webhooks; the server names the variable that is not set."""
    text = (
        '[todo.signatures."orders/payment"]\nscheme = "stripe"\nperson = "stripe"\n'
        'secrets = ["${NEW}"]\n'
    )
    found = load(tmp_path, text).todo
    with pytest.raises(BadSettings, match="NEW, which is not set"), office(found):
        pass


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ('[todo.signatures.payment]\nscheme = "stripe"', "`todo.signatures`: a table"),
        ('scheme = "paypal"', '`todo.signatures."orders/payment".scheme`'),
        ('scheme = "hmac"', '`todo.signatures."orders/payment"` must have `header`'),
        ('header = "X-Sign"', '`todo.signatures."orders/payment".header` must be left out'),
        ('scheme = "hmac"\nheader = "a b"', '`todo.signatures."orders/payment".header`'),
        ('scheme = "hmac"\nheader = "a"\nalgorithm = "md5"', ".algorithm`"),
        ('secrets = ["short"]', '`todo.signatures."orders/payment".secrets`'),
        ("secrets = []", '`todo.signatures."orders/payment".secrets`'),
        ('secrets = "a text that is long enough"', ".secrets`"),
        ('person = ""', '`todo.signatures."orders/payment".person`'),
        ('key = "x"', '`todo.signatures."orders/payment".key` is not a setting'),
    ],
)
def test_bad_settings_of_signatures_are_refused(tmp_path: Path, lines: str, named: str) -> None:
    """What would be no signature, or means nothing, is refused by name, and no secret is shown."""
    given = {
        "scheme": 'scheme = "stripe"',
        "person": 'person = "the bank"',
        "secrets": f'secrets = ["{NEW}"]',
    }
    given |= {one.split(" ", 1)[0]: one for one in lines.splitlines() if one[0] != "["}
    head = lines if lines.startswith("[") else '[todo.signatures."orders/payment"]'
    told = refusal(tmp_path, "\n".join([head, *given.values()] if head != lines else [lines]))
    assert named in told
    assert NEW not in told
    assert "short" not in told


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"orders/paymnt": settings("stripe").signatures["orders/payment"]}, "'orders/paymnt'"),
        (
            {
                "orders/payment": settings("standard", secrets=("x" * 40,)).signatures[
                    "orders/payment"
                ]
            },
            "scheme standard",
        ),
    ],
)
def test_a_server_checks_its_signatures(changed: Any, named: str) -> None:
    """A server with a table for no type, or with a secret that is none, does not start."""
    with pytest.raises(BadSettings, match=named), office(TodoSettings(signatures=changed)):
        pass
