"""Servers of To-Do items as users run them: processes over a served home, on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.faults import oracle
from tests.faults.conftest import PATIENCE, House, wait_for

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.tables import Tables
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served
from delta_outbox.runtime.session import using_server

pytestmark = pytest.mark.rest

AUTHOR = Path(__file__).with_name("author")
CASES = ("first", "killed", "linked", "many", "page", "queued", "same")
TOPIC = "visits.answers"  # of the author's class
HURRY = 50  # answers at once around the expiry
EXPIRIES = int(os.environ.get("OUTBOX_EXPIRIES", "1"))  # items that expire meanwhile
SECRET = "a secret of tests, which is long enough"
ANSWER_SECONDS = 240  # the machine of a test may be busy
ADDRESS = re.compile(r"Answering at (http://127\.0\.0\.1:\d+) \(process (\d+)\)")


class Shop:
    """A served home in which visits are workflows."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.servers: list[subprocess.Popen[str]] = []

    def put_into_force(self) -> None:
        """Put the rows of the workflows into force."""
        served = find_served(Home(root=self.house.root))
        assert served is not None
        with using_server(served.url) as spark:
            rows = joined(rows_of(one) for one in load(["visits"], AUTHOR))
            writes = NumberedWrites(
                spark, Tables(schema="outbox"), writer="workflows", clock=SystemClock()
            )
            assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")

    def asked(self, kind: str, *cases: str) -> None:
        """Append that somebody is to be asked."""
        file = self.house.root.parent / "asked.jsonl"
        lines = [
            {
                "event_id": f"start-{kind}-{case}",
                "event_type": f"{kind}.asked",
                "payload": {"case": case},
            }
            for case in cases
        ]
        file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
        assert 0 == self.house.run("append", str(file))[0]

    def key(self, person: str, role: str) -> tuple[str, dict[str, str]]:
        """Add a key; return its id, and the headers of whoever holds it."""
        code, added = self.house.run("todo", "keys", "add", "--person", person, "--role", role)
        assert 0 == code, added
        return added["id"], {"Authorization": f"Bearer {added['key']}"}

    def serve(self, **environment: str) -> httpx.Client:
        """Start a server, and return a client of it."""
        server = self.house.start("todo", "serve", "-v", **environment)
        self.servers.append(server)

        def address() -> str | None:
            assert server.poll() is None, self.house.errors.read_text()[-3000:]
            found = ADDRESS.findall(self.house.errors.read_text())
            return next((place for place, pid in found if int(pid) == server.pid), None)

        wait_for(address, interval=0.2)
        return httpx.Client(base_url=str(address()), timeout=2 * ANSWER_SECONDS)

    def shown(self, task_id: str) -> Any:
        """Return what the command line says of an item."""
        code, document = self.house.run("todo", "show", task_id)
        assert 0 == code, document
        return document


@pytest.fixture(scope="module")
def shop(
    made_home: Callable[[Path], Home],
    tmp_path_factory: pytest.TempPathFactory,
    plain_environment: dict[str, str],
) -> Iterator[Shop]:
    """Return a served home with open items."""
    home = made_home(tmp_path_factory.mktemp("todo") / "home")
    house = House(root=home.root, environment={**plain_environment, "OUTBOX_HOME": str(home.root)})
    house.settings(
        'type = "jsonl"\npath = "delivered"\n\n[workflows]\nmodules = ["visits"]\n\n'
        f"[todo]\nport = 0\nanswer_seconds = {ANSWER_SECONDS}\nrate_per_second = 1000\n"
        f'link_secret = "{SECRET}"\n[todo.kafka]\n"bootstrap.servers" = "${{TODO_KAFKA}}"\n'
        "hold_seconds = 5"
    )
    (home.root.parent / "dbt_project.yml").write_text("name: shop\n")
    shutil.copy(AUTHOR / "visits.py", home.root.parent)
    for command in ("serve", "consume"):
        code, told = house.run("todo", command)
        assert (2, "SERVER_NEEDED") == (code, told["error"]["code"])
    assert 0 == house.run("up")[0]
    found = Shop(house)
    try:
        found.put_into_force()
        found.asked("visit", *CASES)
        assert 0 == house.run("relay", "--drain")[0]
        yield found
    finally:
        for server in found.servers:
            if server.poll() is None:
                server.kill()
            server.communicate()
        house.run("down")


def answer(client: httpx.Client, who: dict[str, str], task_id: str, **data: Any) -> httpx.Response:
    """Answer an item of visits."""
    place = f"/items/visits/ask/{task_id}/answer"
    return client.post(place, json={"case": task_id.removeprefix("ask-"), **data}, headers=who)


def test_two_servers_are_one(shop: Shop) -> None:
    """What one server is told, the other knows: items, who holds them, answers, keys and that one
    was revoked; one finds the Spark of its home, the other one that is named. An answer is on
    record with what went before it. SIGTERM ends a server in order.
    """
    served = find_served(Home(root=shop.house.root))
    assert served is not None
    one, other = shop.serve(), shop.serve(SPARK_REMOTE=served.url)
    name, clerk = shop.key("ann", "clerk")
    _, stranger = shop.key("bob", "courier")
    wait_for(lambda: one.get("/items", headers=stranger).status_code == 200, limit=10)
    wait_for(lambda: other.get("/items", headers=stranger).status_code == 200, limit=10)
    listed = one.get("/items/visits/ask", headers=clerk).json()
    assert {f"ask-{case}" for case in CASES} == {item["task_id"] for item in listed["items"]}
    shown = other.get("/items/visits/ask/ask-first", headers=clerk)
    assert ({"case": "first"}, "open") == (shown.json()["read_model"], shown.json()["state"])
    forbidden = answer(one, stranger, "ask-first", agreed=True)
    unknown = answer(one, clerk, "ask-nowhere", agreed=True)
    assert (404, 404, forbidden.text) == (forbidden.status_code, unknown.status_code, unknown.text)
    broken = answer(one, clerk, "ask-first", agreed="perhaps")
    assert (422, "/agreed") == (
        broken.status_code,
        broken.json()["error"]["problems"][0]["pointer"],
    )
    began = time.monotonic()
    taken = one.post("/items/visits/ask/ask-first/take", headers=clerk)
    assert (200, "ann") == (taken.status_code, taken.json()["assigned_to"]), taken.text
    print(f"taken within {time.monotonic() - began:.1f} s")  # noqa: T201
    mine = other.get("/items", params={"held_by": "me"}, headers=clerk).json()
    assert ["ask-first"] == [item["task_id"] for item in mine["items"]]
    began = time.monotonic()
    first = answer(one, clerk, "ask-first", agreed=True)
    assert (200, "yes", False) == (first.status_code, *_told(first)), first.text
    print(f"answered within {time.monotonic() - began:.1f} s")  # noqa: T201
    again = answer(other, clerk, "ask-first", agreed=True)
    assert (200, "yes", True) == (again.status_code, *_told(again))
    late = other.post("/answers/visits/ask", json={"case": "first", "agreed": False}, headers=clerk)
    assert (409, "yes") == (late.status_code, late.json()["error"]["outcome"])
    document = shop.shown("ask-first")
    assert ("yes", ["opened", "taken", "answered"]) == (
        document["outcome"],
        [happening["what"] for happening in document["history"]],
    )

    # Fifty at once, through both: one outcome, and everybody is told which.
    told = _at_once(
        [
            partial(
                answer, (one, other)[n % 2], clerk, "ask-many", agreed=n % 3 == 0, remark=str(n)
            )
            for n in range(20)
        ]
    )
    assert {200, 409} == {found.status_code for found in told}
    assert 1 == sum(found.status_code == 200 for found in told)
    assert 1 == len({_outcome(found) for found in told})

    code, _ = shop.house.run("todo", "keys", "revoke", name)
    assert 0 == code
    for client in (one, other):
        wait_for(partial(_is_refused, client, clerk), limit=10)
    code, keys = shop.house.run("todo", "keys", "list")
    assert (0, ["bob"]) == (code, [key["person"] for key in keys["keys"]])
    server = shop.servers[0]
    server.send_signal(signal.SIGTERM)
    assert 0 == shop.house.end(server)[0]


def test_a_kill_loses_nothing_on_record(shop: Shop) -> None:
    """A server that is killed between the command and its response has told nobody; the same
    request, of another server, is told that its answer was on record and counts.
    """
    _, clerk = shop.key("ann", "clerk")
    doomed = shop.serve(OUTBOX_FAILPOINT="command.after@1=driver")
    with pytest.raises(httpx.TransportError):
        answer(doomed, clerk, "ask-killed", agreed=False)
    assert -signal.SIGKILL == shop.servers[-1].wait(PATIENCE)
    survivor = shop.serve()
    again = answer(survivor, clerk, "ask-killed", agreed=False)
    assert (200, "no", True) == (again.status_code, *_told(again))
    other = answer(survivor, clerk, "ask-killed", agreed=True)
    assert (409, "no") == (other.status_code, other.json()["error"]["outcome"])


def test_a_kill_of_a_consumer_loses_nothing_on_record(shop: Shop) -> None:
    """A consumer that is killed between the command and the commit of the offset has lost nothing:
    the next one gets the message again, knows the answer as one on record, and goes on.
    """
    with KafkaServer() as kafka:
        for topic in (TOPIC, f"{TOPIC}.dead"):
            kafka.create_topic(topic, 1)
        _produce(kafka, {"case": "queued", "agreed": True})
        environment = {"TODO_KAFKA": kafka.bootstrap}
        doomed = shop.house.start(
            "todo", "consume", "-v", **environment, OUTBOX_FAILPOINT="command.after@1=driver"
        )
        shop.servers.append(doomed)
        assert -signal.SIGKILL == doomed.wait(PATIENCE)
        assert _committed(kafka) < 0
        _produce(
            kafka,
            {"case": "queued", "agreed": False},
            {"case": "queued", "agreed": "perhaps"},
            {"case": "queued", "agreed": True},
        )
        survivor = shop.house.start("todo", "consume", "-v", **environment)
        shop.servers.append(survivor)
        wait_for(lambda: _committed(kafka) == 4, interval=0.5)
        survivor.send_signal(signal.SIGTERM)
        code, told = shop.house.end(survivor)
        assert (0, 3, 1) == (code, told["answers"], told["dead_letters"])
        (dead,) = consume_all(kafka.bootstrap, f"{TOPIC}.dead")
        assert b"BAD_ANSWER" == dict(dead.headers() or [])["outbox-error"]
    assert "yes" == shop.shown("ask-queued")["outcome"]
    commands = oracle.rows_of(shop.house.log("commands"))
    answers = [row for row in commands if row["event_id"] == "ask-queued"]
    assert ["no", "yes"] == sorted(json.loads(row["arguments"])["outcome"] for row in answers)
    assert {f"kafka:{TOPIC}"} == {row["actor"] for row in answers}


def _produce(kafka: KafkaServer, *values: Any) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(TOPIC, json.dumps(value).encode())
    assert 0 == producer.flush(PATIENCE)


def _committed(kafka: KafkaServer) -> int:
    """Return from where the group goes on; negative: from nowhere."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "delta-outbox-todo"})
    try:
        (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=60)
        return int(found.offset)
    finally:
        consumer.close()


def test_one_outcome_around_the_expiry(shop: Shop) -> None:
    """People who answer around the expiry of an item are all told the truth: if one answer counts,
    it is the outcome; if none does, the item has expired.
    """
    _, courier = shop.key("carl", "courier")
    servers = shop.serve(), shop.serve()
    cases = [f"h{number}" for number in range(EXPIRIES)]
    relay = shop.house.start("relay", "--continuous")
    shop.servers.append(relay)
    hurried = {}
    with ThreadPoolExecutor(EXPIRIES) as hurrying:
        for case in cases:  # one after the other, so that they expire so too
            shop.asked("hurry", case)
            hurried[case] = hurrying.submit(_hurried, servers, courier, case)
    won = {case: found.result() for case, found in hurried.items()}
    relay.send_signal(signal.SIGTERM)
    assert 0 == shop.house.end(relay)[0]
    assert 0 == shop.house.run("relay", "--drain")[0]
    for case, outcomes in won.items():
        shown = shop.shown(f"hurry-{case}")
        assert ("ended", *(outcomes or {"nothing"})) == (shown["state"], shown["outcome"]), case


def _hurried(
    servers: tuple[httpx.Client, httpx.Client], who: dict[str, str], case: str
) -> set[str]:
    """Answer an item many times from two seconds before its expiry on; return what was told to be
    its outcome.
    """
    item = f"/items/hurries/hurry/hurry-{case}"
    wait_for(lambda: servers[0].get(item, headers=who).status_code == 200, interval=1)
    expires = datetime.fromisoformat(servers[0].get(item, headers=who).json()["expires_at"])
    remaining = (expires - datetime.now(UTC)).total_seconds()
    assert remaining > 2, f"{case} is asked about too late to hurry"

    def answered(number: int) -> httpx.Response:
        data = {"case": case, "agreed": number % 2 == 0}
        time.sleep(max(0.0, remaining - 2 + 4 * number / HURRY))
        # A client that many threads share closes connections that others have just taken.
        with httpx.Client(verify=False, timeout=2 * ANSWER_SECONDS) as client:
            url = f"{servers[number % 2].base_url}{item}/answer"
            return client.post(url, json=data, headers=who)

    told = _at_once([partial(answered, number) for number in range(HURRY)])
    assert {200, 409, 410} >= {found.status_code for found in told}
    return {_outcome(found) for found in told if found.status_code in (200, 409)}


def _is_refused(client: httpx.Client, who: dict[str, str]) -> bool:
    return client.get("/items", headers=who).status_code == 401


def test_pages_of_two_servers_are_one(shop: Shop) -> None:
    """Who signs in at one server is signed in at the other, and answers by a form what the item
    asks for; a link opens its item at both, until it is over.
    """
    code, added = shop.house.run("todo", "keys", "add", "--person", "eve", "--role", "clerk")
    assert 0 == code
    one, other = shop.serve(), shop.serve()
    page = one.get("/todo", follow_redirects=True)
    sent = {"token": _hidden(page), "key": added["key"]}
    wait_for(lambda: one.post("/todo/sign-in", data=sent).status_code == 303, limit=10)
    other.cookies = one.cookies
    wait_for(lambda: other.get("/todo").status_code == 200, limit=10)
    assert "item?id=ask-page" in other.get("/todo").text
    item = other.get("/todo/item?id=ask-page")
    assert "Filled in for you: Case" in item.text
    given = {"token": _hidden(item), "answer": _hidden(item, "answer"), "data/case": "page"}
    broken = other.post("/todo/item?id=ask-page", data=given)
    assert (422, True) == (broken.status_code, "Choose one of these." in broken.text)
    given |= {"data/agreed": "true"}
    for server in (one, other):
        told = server.post("/todo/item?id=ask-page", data=given, follow_redirects=True)
        assert "Thank you, your answer counts" in told.text, told.text
    assert "yes" == shop.shown("ask-page")["outcome"]

    code, made = shop.house.run("todo", "link", "ask-linked")
    assert 0 == code
    customer = httpx.Client(base_url=one.base_url, timeout=2 * ANSWER_SECONDS)
    item = customer.get(made["path"])
    sent = {"token": _hidden(item), "answer": _hidden(item, "answer"), "data/case": "linked"}
    sent |= {"data/agreed": "false"}
    told = customer.post(made["path"], data=sent, follow_redirects=True)
    assert "Thank you, your answer counts" in told.text, told.text
    assert "no" == shop.shown("ask-linked")["outcome"]
    another = httpx.Client(base_url=other.base_url, timeout=2 * ANSWER_SECONDS)
    wait_for(lambda: another.get(made["path"]).status_code == 404, limit=10)


def _hidden(page: httpx.Response, name: str = "token") -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', page.text)
    assert found is not None, page.text
    return found[1]


def _told(found: httpx.Response) -> tuple[str, bool]:
    return found.json()["outcome"], found.json()["is_repeat"]


def _outcome(found: httpx.Response) -> str:
    document = found.json()
    return str(document["outcome"] if found.status_code == 200 else document["error"]["outcome"])


def _at_once(calls: list[Callable[[], httpx.Response]]) -> list[httpx.Response]:
    told: dict[int, httpx.Response] = {}

    def run(number: int) -> None:
        told[number] = calls[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [told[number] for number in range(len(calls))]
