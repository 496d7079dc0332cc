"""The PostgreSQL of the peers: durable, with the memory and log that the load wants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import psycopg
from tests.conformance.postgres_server import PostgresServer

# What one would set on a machine like this for a table that is written all the time. Nothing here
# touches durability: fsync, synchronous_commit and full_page_writes stay on, and are asked for.
_SETTINGS: Final = {
    "shared_buffers": "1GB",
    "effective_cache_size": "3GB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "on",
    "autovacuum_vacuum_cost_limit": "2000",
    "max_connections": "200",
}
_DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")


class NotDurable(Exception):
    """The server may lose what it has committed, so its speed is no speed."""


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Run a server for a block and give what a client needs to connect.

    Raises:
        NotDurable: it does not wait for the disk.
    """
    server = PostgresServer(_SETTINGS)
    try:
        with psycopg.connect(server.conninfo) as db:
            for name in _DURABLE:
                row = db.execute(f"show {name}").fetchone()
                if row is None or row[0] != "on":
                    raise NotDurable(f"{name} is {row}")
        yield server.conninfo
    finally:
        server.close()


def server_version(conninfo: str) -> str:
    """Return the version of the server.

    Args:
        conninfo: where it is.
    """
    with psycopg.connect(conninfo) as db:
        return str(db.info.server_version)


def rest(conninfo: str, table: str) -> None:
    """Let a server finish what loading a table has left to do, before it is measured.

    Args:
        conninfo: where it is.
        table: that was loaded.
    """
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute(f"vacuum (analyze) {table}")
        db.execute("checkpoint")
