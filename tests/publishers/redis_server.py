"""A real Redis, asked by a client that is not the publisher's."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import redis
from tests.publishers.local_server import LocalServer, find_program

from delta_outbox.publishers import Delivered, Unknown


class RedisServer(LocalServer):
    """A server with TLS on a second port if it is given certificates.

    Args:
        options: further words of its command line.
        password: that connections need; None: none.
    """

    def __init__(self, *options: str, password: str | None = None) -> None:
        super().__init__()
        self._options = options
        self._password = password

    def command(self) -> Iterable[str]:
        yield find_program("redis-server", "redis-server")
        yield from ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        yield from ("--save", "", "--appendonly", "yes", "--appendfsync", "no")
        yield from ("--loglevel", "warning", *self._options)
        if self._password is not None:
            yield from ("--requirepass", self._password)

    def is_ready(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.ResponseError) as error:
            raise OSError(str(error)) from error

    def client(self, **options: Any) -> redis.Redis:
        """Return a client that gives bytes."""
        given = {"port": self.port, "password": self._password, **options}
        return redis.Redis(host="127.0.0.1", protocol=2, **given)


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Return the files of an authority, and of a certificate for 127.0.0.1 and its key."""
    authority, key = folder / "ca.pem", folder / "key.pem"
    request, certificate = folder / "request.pem", folder / "cert.pem"
    extension = folder / "extension"
    extension.write_text("subjectAltName=IP:127.0.0.1\n")
    new = ("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    ca_key = folder / "ca-key.pem"
    sign = ("-CA", authority, "-CAkey", ca_key, "-CAcreateserial", "-extfile", extension)
    for words in (
        (*new, "-x509", "-subj", "/CN=authority", "-keyout", ca_key, "-out", authority),
        (*new, "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", request),
        ("openssl", "x509", "-req", "-in", request, "-out", certificate, *sign),
    ):
        subprocess.run(words, check=True, capture_output=True)
    return authority, certificate, key


def check_answers(server, events, results, route="s"):
    """Compare what was said with what is there; return the ids that are.

    Delivered is there exactly once, Unknown may be, nothing else is; a key is a prefix, in order.
    """
    said = {event.event_id: type(result) for event, result in zip(events, results, strict=True)}
    with server.client() as client:
        found = [fields[b"id"].decode() for _, fields in client.xrange(route)]
    assert len(found) == len(set(found))
    assert {name for name, kind in said.items() if kind is Delivered} <= set(found)
    assert {said[name] for name in found} <= {Delivered, Unknown}
    place = {name: number for number, name in enumerate(found)}
    by_key = defaultdict(list)
    for event in events:
        if event.key is not None:
            by_key[event.key].append(place.get(event.event_id))
    for places in by_key.values():
        there = [number for number in places if number is not None]
        assert there == sorted(there) == places[: len(there)]
    return set(found)
