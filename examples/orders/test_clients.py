"""The clients of the orders against a server that answers, refuses, breaks off and hangs."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orders
import pytest
from audit import broken
from http_clients import Api, HttpWarehouse, Unclear
from order_creation import Notice, Order, ReceivePayment, ReserveStock, order_creation
from scripted import Town, Warehouse

from delta_outbox.railway import CertainlyNot, FinallyRefused, State, Trigger
from delta_outbox.testing.workflows import Answer, Trouble, check_task, provided, run_workflow

TOKEN = "t0p-s3cret"
SOON = timedelta(seconds=5)
AT_ONCE = timedelta(milliseconds=200)
TEA = Order(order_id="o7", customer="c1", products=("tea", "cups"))
Answers = Callable[[str, str, dict[str, Any]], Any]
"""By path, key or reference, and body."""


class Broken(Exception):
    """The server breaks off without an answer."""


class Server(ThreadingHTTPServer):
    """A third party on this machine; `received` is what came: method, path, headers and body."""

    daemon_threads = True

    def __init__(self, answers: Answers) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.answers = answers
        self.received: list[tuple[str, str, dict[str, str], Any]] = []

    @property
    def table(self) -> dict[str, str]:
        """Its table of outbox.toml."""
        return {"url": f"http://127.0.0.1:{self.server_address[1]}/", "token": TOKEN}


class _Request(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(self.headers.get("idempotency-key") or body.get("reference", ""), body)

    def do_GET(self) -> None:
        self.answer(parse_qs(urlsplit(self.path).query)["reference"][0], {})

    def answer(self, key: str, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.command, self.path, headers, body))
        status = 200
        try:
            said = self.server.answers(f"{self.command} {urlsplit(self.path).path}", key, body)
        except FinallyRefused:
            status, said = 422, {"why": TOKEN}
        except CertainlyNot:
            status, said = 429, {}
        except (Broken, TimeoutError):
            return  # the connection is closed
        if isinstance(said, int):
            status, said = said, {"why": TOKEN}
        content = b"" if said is None else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    """Serve for a block."""
    with Server(answers) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_every_task_is_given_its_client() -> None:
    """With the tables of the settings every task is made, and no client outlasts its attempt."""
    parties = {
        task.third_party
        for one in orders.WORKFLOWS
        for task in one.tasks
        if issubclass(task, State)
    }
    settings = {name: {"url": f"https://{name}.example.com", "token": TOKEN} for name in parties}
    tasks = provided(orders.provide, orders.WORKFLOWS, settings)
    for task in tasks:
        if isinstance(task, State):
            assert timedelta(0) < orders.timeout_of(task.third_party) < task.time_limit
        assert TOKEN not in repr(vars(task))


def test_a_call_says_who_calls_and_for_what_key() -> None:
    """Token, key and body arrive as they are, and the answer comes back."""
    with serving(lambda path, key, body: {"number": "i-1"}) as server:
        api = Api(server.table, SOON)
        assert api.post("/invoices", {"cents": 5}, key="create-invoice-o7") == {"number": "i-1"}
    ((method, path, headers, body),) = server.received
    assert (method, path, body) == ("POST", "/invoices", {"cents": 5})
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["idempotency-key"] == "create-invoice-o7"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Unclear),
        (400, FinallyRefused),
        (401, CertainlyNot),
        (404, CertainlyNot),
        (408, Unclear),
        (409, CertainlyNot),
        (422, FinallyRefused),
        (429, CertainlyNot),
        (500, Unclear),
        (503, Unclear),
    ],
)
def test_a_status_says_what_is_certain(status: int, kind: type[Exception]) -> None:
    """Only an answer that means it is a certain no; each call goes out once, also after a 503."""
    no = (CertainlyNot, Unclear)
    with serving(lambda path, key, body: status) as server, pytest.raises(no) as raised:
        Api(server.table, SOON).post("/mails", {}, key="k")
    assert type(raised.value) is kind
    assert TOKEN not in str(raised.value)
    assert len(server.received) == 1


def test_nobody_listens_is_certain() -> None:
    """Where there is no connection nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CertainlyNot, match="no connection"):
        Api({"url": f"http://127.0.0.1:{port}", "token": TOKEN}, SOON).post("/mails", {})


@pytest.mark.parametrize("hangs", [True, False])
def test_silence_is_not_certain(hangs: bool) -> None:
    """After a call that is not answered, or breaks off, nobody knows; it went out once."""
    over = Event()

    def says_nothing(*_: Any) -> None:
        if hangs:
            over.wait()
        raise Broken

    with serving(says_nothing) as server:
        try:
            with pytest.raises(Exception, match=r"timed out|aborted") as raised:
                Api(server.table, AT_ONCE).post("/mails", {}, key="k")
        finally:
            over.set()
    assert not isinstance(raised.value, CertainlyNot)
    assert len(server.received) == 1


def test_nothing_there_has_to_be_said() -> None:
    """A list without entries is nothing; a 404 is no answer."""
    with serving(lambda path, key, body: []) as server:
        assert HttpWarehouse(Api(server.table, SOON)).reservation("reserve-stock-o7") is None
    with serving(lambda path, key, body: 404) as server, pytest.raises(CertainlyNot):
        HttpWarehouse(Api(server.table, SOON)).reservation("reserve-stock-o7")


@pytest.mark.parametrize("token", ["two\nlines", "smörgås"])
def test_a_token_that_no_header_carries_is_not_shown(token: str) -> None:
    """It is refused where clients are made, before an error could repeat it."""
    with pytest.raises(ValueError, match="no header can carry") as refused:
        Api({"url": "https://shop.example.com", "token": token}, SOON)
    assert token not in str(refused.value)


def of(town: Town) -> Answers:
    """Let scripted third parties answer over HTTP."""

    def answer(path: str, key: str, body: dict[str, Any]) -> Any:
        match path:
            case "POST /orders":
                return town.shop.register(key, Order(**{**body, "products": ()}))
            case "POST /reservations":
                return {"missing": town.warehouse.reserve(key, tuple(body["products"]))}
            case "GET /reservations":
                missing = town.warehouse.reservation(key)
                return [] if missing is None else [{"missing": missing}]
            case "POST /releases":
                return {"found": town.warehouse.release(key, body["order_id"])}
            case "GET /releases":
                found = town.warehouse.released(key)
                return [] if found is None else [{"found": found}]
            case "POST /invoices":
                number = town.invoicing.create(key, tuple(body["products"]), body["cents"])
                return {"number": number}
            case "POST /voids":
                return {"found": town.invoicing.void(key, body["order_id"])}
            case "POST /requests":
                return town.terminal.ask("ask-for-payment-o7", body["customer"], body["cents"])
            case "POST /captures":
                return town.payments.capture(key, body["order_id"])
            case "POST /mails":
                return town.mail.tell(key, body["customer"], body["text"])
        return 404

    return answer


def test_an_order_over_http_goes_well() -> None:
    """With the clients that production has, an order is reserved, billed, paid and confirmed."""
    town = Town()
    notice = Notice(order_id="o7", attempt=1, status="succeeded")
    with serving(of(town)) as server:
        settings = dict.fromkeys(
            ["shop", "warehouse", "invoicing", "terminal", "payments", "mail"], server.table
        )
        run = run_workflow(
            order_creation,
            provided(orders.provide, orders.WORKFLOWS, settings),
            TEA,
            people=[Answer(task=ReceivePayment, data=notice)],
            third_parties=town.parties,
        )
    assert run.end == "order.confirmed"
    assert town.invoicing.effects("create-invoice-o7") == [(("tea", "cups"), 2000)]
    assert town.payments.effects("capture-o7") == ["o7"]
    assert list(broken(town)) == []


def test_a_reservation_whose_answer_is_lost_is_found_over_http() -> None:
    """The connection breaks off after the warehouse has acted; the look-up finds it, once."""
    town = Town(warehouse=Warehouse([Trouble.ANSWERS, Trouble.ACTS_SILENTLY]))
    with serving(of(town)) as server:
        task = ReserveStock(HttpWarehouse(Api(server.table, SOON)))
        trigger = Trigger(instance="o7", start=TEA)
        run = check_task(order_creation, task, trigger, [town.warehouse])
    assert run.cause == "decided"
    assert town.warehouse.effects("reserve-stock-o7") == [[]]
    assert [path.partition("?")[0] for _, path, _, _ in server.received][-3:] == [
        "/reservations",
        "/reservations",
        "/reservations",
    ]
