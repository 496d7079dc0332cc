"""The scripted third parties in a process of their own: one for each key, with a script of its own.

Time is that of the machine, and what the test has added to it. A request is a line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.unit.workflow_engine.scripted_parties import ALONE, Party

from delta_outbox.railway import CertainlyNot, FinallyRefused
from delta_outbox.testing.workflows import Trouble, VirtualClock
from delta_outbox.testing.workflows.third_parties import WorkerDied

ROOT = Path(__file__).resolve().parents[3]


class Parties:
    """The process, as a test sees it.

    Args:
        port: that it listens at, on this machine.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    def follow(self, scripts: Mapping[str, Sequence[Trouble]]) -> None:
        """Let calls of some keys go wrong.

        Args:
            scripts: by key.
        """
        self._ask(scripts={key: [one.name for one in script] for key, script in scripts.items()})

    def add_time(self, seconds: float) -> None:
        """Let time pass for them.

        Args:
            seconds: how much.
        """
        self._ask(seconds=seconds)

    def told(self, *, everything: bool = False) -> dict[str, dict[str, Any]]:
        """Return by key what was done and asked.

        Args:
            everything: let first happen what is under way.
        """
        found: dict[str, dict[str, Any]] = self._ask(tell="all" if everything else "now")
        return found

    def unanswered(self, worker: str) -> set[str]:
        """Return the keys of the calls of a relay that wait for it to die.

        Args:
            worker: the relay.
        """
        return set(self._ask(unanswered=worker))

    def _ask(self, **what: Any) -> Any:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"{json.dumps(what)}\n".encode())
            with connection.makefile("rb") as lines:
                return json.loads(lines.readline())["value"]


@contextlib.contextmanager
def parties() -> Iterator[Parties]:
    """Run the process for a block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.railway.served_parties"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Parties(int(process.stdout.readline()))
    finally:
        process.stdin.close()  # it ends by that
        process.stdout.close()
        process.wait()


# --- the process itself --------------------------------------------------------------------------


class _Town:
    def __init__(self) -> None:
        self.clock = VirtualClock(datetime.now(UTC))
        self.added = timedelta(0)
        self.scripts: dict[str, list[Trouble]] = {}
        self.parties: dict[str, Party] = {}
        self.unanswered: dict[str, str] = {}  # the relay, by key

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.clock.pass_until(datetime.now(UTC) + self.added)
        match request:
            case {"party": party, "worker": worker, "method": method, "given": [key, *_] as given}:
                return self._called(self._party(party, key), worker, method, given)
            case {"scripts": scripts}:
                for key, names in scripts.items():
                    self.scripts[key] = [Trouble[one] for one in names]
                    if key in self.parties:
                        self.parties[key].script = self.scripts.pop(key)
            case {"seconds": seconds}:
                self.added += timedelta(seconds=seconds)
            case {"unanswered": worker}:
                return {"value": sorted(k for k, one in self.unanswered.items() if one == worker)}
            case {"tell": when}:
                if when == "all":
                    self.clock.pass_everything()
                return {"value": {key: one.told for key, one in self.parties.items()}}
        return {"value": None}

    def _party(self, party: str, key: str) -> Party:
        if key not in self.parties:
            self.parties[key] = Party(self.scripts.pop(key, ()), party=party)
            self.parties[key].clock = self.clock
        return self.parties[key]

    def _called(self, party: Party, worker: str, method: str, given: list[Any]) -> dict[str, Any]:
        self.unanswered.pop(given[0], None)
        try:
            return {"value": getattr(party, method)(*given)}
        except WorkerDied:
            if party.name not in ALONE:
                self.unanswered[given[0]] = worker
            return {"error": "WorkerDied"}
        except (CertainlyNot, FinallyRefused, TimeoutError) as error:
            return {"error": type(error).__name__}


def serve() -> None:
    """Be the process."""
    town = _Town()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(json.dumps(town.answer(json.loads(line))).encode() + b"\n")
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(
            answer, "127.0.0.1", 0, backlog=2000, limit=16 * 1024**2
        )
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())


if __name__ == "__main__":
    serve()
