"""A third party that answers at once and remembers keys, in a process of its own.

It writes down when each call came and when it was answered. A request is a line of JSON, and so is
the answer. It ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that asked for something to be done.

    Args:
        key: of the call.
        came: when, in seconds of the clock of the third party.
        answered: when the answer left, the same.
    """

    key: str
    came: float
    answered: float


class ThirdParty:
    """What calls it; a thread has a connection of its own.

    Args:
        port: that it listens at, on this machine.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._own = threading.local()

    def act(self, key: str) -> None:
        """Do something once for a key."""
        self._ask(act=key)

    def find(self, key: str) -> bool:
        """Say whether something was done for a key."""
        return bool(self._ask(find=key))

    def calls(self) -> list[Call]:
        """Return the calls that asked for something to be done, in their order, and forget them."""
        return [Call(key=key, came=came, answered=end) for key, came, end in self._ask(tell=True)]

    def _ask(self, **what: Any) -> Any:
        if not hasattr(self._own, "lines"):
            connection = socket.create_connection(("127.0.0.1", self.port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._own.lines = connection.makefile("rwb")
        self._own.lines.write(f"{json.dumps(what)}\n".encode())
        self._own.lines.flush()
        return json.loads(self._own.lines.readline())


@contextlib.contextmanager
def third_party() -> Iterator[ThirdParty]:
    """Run it for a block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.third_party"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield ThirdParty(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def delays_between(calls: Sequence[Call], steps: Sequence[str]) -> list[float]:
    """Return the seconds from the answer to a step until the call of the next, of all instances.

    Args:
        calls: with the keys STEP-NUMBER.
        steps: their names, in order.
    """
    found = {one.key: one for one in calls}
    return [
        found[f"{after}-{number}"].came - one.answered
        for before, after in itertools.pairwise(steps)
        for key, one in found.items()
        for name, _, number in [key.partition("-")]
        if name == before
    ]


class _Ledger:
    def __init__(self) -> None:
        self.done: set[str] = set()
        self.calls: list[tuple[str, float, float]] = []

    def answer(self, asked: Mapping[str, Any], came: float) -> Any:
        match asked:
            case {"act": key}:
                self.done.add(key)
                self.calls.append((key, came, time.monotonic()))
                return None
            case {"find": key}:
                return key in self.done
        told, self.calls = self.calls, []
        return told


def serve() -> None:
    """Be the process."""
    ledger = _Ledger()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while line := await reader.readline():
                came = time.monotonic()
                writer.write(json.dumps(ledger.answer(json.loads(line), came)).encode() + b"\n")
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())


if __name__ == "__main__":
    serve()
