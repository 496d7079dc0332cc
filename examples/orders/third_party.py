"""A third party as a process of its own: `python third_party.py NAME --ledger FILE --seed N`.

It speaks the HTTP that `http_clients.py` does, writes into its ledger whatever it is asked and
whatever it does, and misbehaves by a seed: refuses, breaks off, is silent, acts and breaks off,
acts and says that it has failed, acts late, answers late. It prints the port that it listens at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import demo_times
from ledger_files import THIRD_PARTIES, Ledger, Writer

PRODUCTS: Final = ("tea", "cups", "honey", "spoons", "sugar")
MISSING: Final = 0.04  # of the products of an order
REJECTED: Final = 0.01  # of all keys


class Behaviour(StrEnum):
    """What becomes of a request."""

    ANSWERS = "answers"
    REFUSES = "refuses"  # for now: nothing is done
    REJECTS = "rejects"  # for good: nothing is done
    BREAKS_OFF = "breaks off"  # nothing is done, and nobody can tell
    IS_SILENT = "is silent"  # likewise
    ACTS_AND_BREAKS_OFF = "acts and breaks off"
    ACTS_AND_IS_SILENT = "acts and is silent"
    ACTS_AND_SAYS_ERROR = "acts and says error"
    ACTS_LATE = "acts late"  # and never answers
    ANSWERS_LATE = "answers late"


ACTS_AT_ONCE: Final = frozenset(
    {
        Behaviour.ANSWERS,
        Behaviour.ACTS_AND_BREAKS_OFF,
        Behaviour.ACTS_AND_IS_SILENT,
        Behaviour.ACTS_AND_SAYS_ERROR,
        Behaviour.ANSWERS_LATE,
    }
)
TROUBLES: Final = tuple(
    one for one in Behaviour if one not in {Behaviour.ANSWERS, Behaviour.REJECTS}
)


class Conflict(Exception):
    """A key came with another body."""


class ThirdParty:
    """What a third party has done, and does.

    Args:
        name: one of `THIRD_PARTIES`.
        path: of its ledger; what stands there it has done already.
        seed: of its behaviour.
        troubled: share of requests that something goes wrong with.
    """

    def __init__(self, name: str, path: Path, *, seed: str, troubled: float) -> None:
        self.name, self._seed, self._troubled = name, seed, troubled
        self._ledger = Writer(path)
        self._lock = Lock()
        self._asked: Counter[str] = Counter()
        self._answers: dict[str, tuple[str, Any]] = {}  # by key: the body, and what was answered
        before = Ledger(path)
        for one in before.asked():
            self._asked[one["key"]] += 1
        for line in before.lines:
            if "done" in line:
                self._answers[line["key"]] = line["done"], line["answer"]

    def behaviour(self, key: str, *, acting: bool) -> Behaviour:
        """Write down that somebody asks, and return what becomes of it.

        Args:
            key: of the request.
            acting: whether something is to be done; else it is a look-up.
        """
        with self._lock:
            turn = self._asked[key]
            self._asked[key] += 1
            found = self._drawn(key, turn, acting=acting)
            self._ledger.write(asked=acting, key=key, behaviour=found)
        return found

    def _drawn(self, key: str, turn: int, *, acting: bool) -> Behaviour:
        # A good third party refuses a key for good always or never; a person it does not refuse.
        is_by_hand = key.startswith("by-hand-")
        if acting and not is_by_hand and random.Random(f"{self._seed}/{key}").random() < REJECTED:
            return Behaviour.REJECTS
        chance = random.Random(f"{self._seed}/{key}/{turn}")
        return chance.choice(TROUBLES) if chance.random() < self._troubled else Behaviour.ANSWERS

    def act(self, key: str, what: Any, answer: Any) -> Any:
        """Do something, unless the third party takes keys and has done it; return what is answered.

        Args:
            key: of the request.
            what: to write into the ledger.
            answer: to a first request.

        Raises:
            Conflict: the key came with something else before.
        """
        body = json.dumps(what, ensure_ascii=False)
        with self._lock:
            known = self._answers.get(key)
            if known is not None and self.name not in ("warehouse", "terminal"):
                if known[0] != body:
                    self._ledger.write(conflict=body, key=key)
                    raise Conflict
                return known[1]
            self._ledger.write(done=body, key=key, what=what, answer=answer)
            self._answers[key] = body, answer
        return answer

    def find(self, key: str) -> Any | None:
        """Return what was answered to a key, None if nothing was done.

        Args:
            key: of the request that did it.
        """
        with self._lock:
            known = self._answers.get(key)
        return None if known is None else known[1]

    # --- what each of them does ----------------------------------------------------------------

    def request(self, path: str, key: str, body: Mapping[str, Any]) -> Callable[[], Any]:
        """Return what does what a request asks for, and returns the answer.

        Args:
            path: of the URL.
            key: that came with it.
            body: that came with it.
        """
        match path:
            case "/orders":
                return lambda: self.act(key, body["order_id"], None)
            case "/reservations":
                missing = [one for one in body["products"] if self._is_out_of(one, key)]
                return lambda: self.act(key, missing, {"missing": missing})
            case "/releases":
                return lambda: self._undo(key, f"reserve-stock-{body['order_id']}")
            case "/invoices":
                answer = {"number": f"invoice of {key}"}
                return lambda: self.act(key, [body["products"], body["cents"]], answer)
            case "/voids":
                return lambda: self._undo(key, f"create-invoice-{body['order_id']}")
            case "/requests":
                # It knows no keys; the ledger calls the customer by name.
                return lambda: self.act(body["customer"], [body["customer"], body["cents"]], None)
            case "/captures":
                return lambda: self.act(key, body["order_id"], None)
            case "/mails":
                return lambda: self.act(key, [body["customer"], body["text"]], None)
            case _:
                raise KeyError(path)

    def _undo(self, key: str, former: str) -> Any:
        found = self.find(former) is not None
        return self.act(key, found, {"found": found})

    def _is_out_of(self, product: str, key: str) -> bool:
        return random.Random(f"{self._seed}/{key}/{product}").random() < MISSING


class Server(ThreadingHTTPServer):
    """The server of a third party."""

    daemon_threads = True
    request_queue_size = 200

    def __init__(self, party: ThirdParty) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.party = party


class _Request(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer a look-up."""
        party = self.server.party
        key = parse_qs(urlsplit(self.path).query)["reference"][0]

        def find() -> list[Any]:
            found = party.find(key)
            return [] if found is None else [found]

        self._follow(party.behaviour(key, acting=False), find)

    def do_POST(self) -> None:
        """Do something."""
        party = self.server.party
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers.get("idempotency-key") or body.get("reference") or body["customer"]
        self._follow(party.behaviour(key, acting=True), party.request(self.path, key, body))

    def _follow(self, behaviour: Behaviour, act: Callable[[], Any]) -> None:
        if behaviour is Behaviour.REFUSES:
            return self._answer(429, None)
        if behaviour is Behaviour.REJECTS:
            return self._answer(422, None)
        if behaviour is Behaviour.ACTS_LATE:
            time.sleep(demo_times.LATE)
        answer = None
        if behaviour in ACTS_AT_ONCE or behaviour is Behaviour.ACTS_LATE:
            try:
                answer = act()
            except Conflict:
                return self._answer(409, None)
        match behaviour:
            case Behaviour.ACTS_AND_SAYS_ERROR:
                return self._answer(500, None)
            case Behaviour.IS_SILENT | Behaviour.ACTS_AND_IS_SILENT:
                time.sleep(demo_times.SILENT)
            case Behaviour.ANSWERS_LATE:
                time.sleep(demo_times.SLOW)
        if behaviour in (Behaviour.ANSWERS, Behaviour.ANSWERS_LATE):
            return self._answer(200, answer)
        self.close_connection = True
        return None

    def _answer(self, status: int, answer: Any) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        try:
            self.send_response_only(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True  # whoever asked has gone away

    def log_message(self, *words: Any) -> None:
        """Print nothing: the ledger says it."""


def main() -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=THIRD_PARTIES)
    parser.add_argument("--ledger", type=Path, required=True, metavar="FILE")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--troubled", type=float, default=0.15, metavar="SHARE")
    given = parser.parse_args()
    party = ThirdParty(given.name, given.ledger, seed=given.seed, troubled=given.troubled)
    with Server(party) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
