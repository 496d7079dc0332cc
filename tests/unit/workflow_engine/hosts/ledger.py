"""A third party for tests: a process that writes down each request before it answers.

A request is a line; it is what somebody asks for, or `?`, which is answered with all lines so far.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


class Ledger:
    """What the process has written down.

    Args:
        port: that it listens at, on this machine.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    def read(self) -> list[str]:
        """Return all requests, in their order."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"?\n")
            with connection.makefile("rb") as answer:
                found: list[str] = json.loads(answer.readline())
                return found


@contextlib.contextmanager
def ledger() -> Iterator[Ledger]:
    """Run the process for a block."""
    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Ledger(int(process.stdout.readline()))
    finally:
        process.stdin.close()  # it ends by that
        process.stdout.close()
        process.wait()


def serve() -> None:
    """Be the process."""
    import asyncio

    written: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while line := (await reader.readline()).decode().strip():
                if line == "?":
                    writer.write(json.dumps(written).encode() + b"\n")
                else:
                    written.append(line)
                    writer.write(b"!")
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2000)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())


if __name__ == "__main__":
    serve()
