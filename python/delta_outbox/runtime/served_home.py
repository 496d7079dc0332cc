"""Says where the server of a home is, while it runs."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from delta_outbox.core.errors import HomeMoved
from delta_outbox.core.instants import iso_text
from delta_outbox.runtime.home import PRIVATE_FILE, Home
from delta_outbox.runtime.home_lock import is_alive

REMOTE_VARIABLE = "SPARK_REMOTE"

# With a token the client speaks TLS to any other name, 127.0.0.1 included.
_ADDRESS = re.compile(r"sc://localhost:\d{1,5}", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that answers.

    Args:
        address: `sc://localhost:<port>`.
        token: what a client must know; never shown.
        pid: the process of `outbox serve`.
        since: when it began to answer.
        home: the home that it serves, where that was then.
        questions_port: of 127.0.0.1, where its process answers what only reads (questions.py).
    """

    address: str
    token: str = field(repr=False)
    pid: int
    since: datetime
    home: Path
    questions_port: int | None = None

    @property
    def url(self) -> str:
        """Return what SPARK_REMOTE holds; it contains the token."""
        return f"{self.address}/;token={self.token}"

    def as_dict(self) -> dict[str, object]:
        """Return what anybody may see of it, as a document."""
        return {"address": self.address, "pid": self.pid, "since": iso_text(self.since)}


def write_served(home: Home, served: Served) -> None:
    """Write down where the server of a home is: whole or not at all, for its owner alone.

    Args:
        home: the home; this process has its lock.
        served: the server, which answers already.
    """
    document = {
        "address": served.address,
        "token": served.token,
        "pid": served.pid,
        "since": served.since.isoformat(),
        "home": str(served.home),
        "questions_port": served.questions_port,
    }
    draft = home.served_file.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)  # a file of its name might be open to others
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file)
    draft.replace(home.served_file)


def remove_served(home: Home, served: Served) -> None:
    """Remove what says where a server is, which ends now.

    Args:
        home: the home. Another one may lie at its place by now, with a server of its own.
        served: the server.
    """
    if read_served(home) == served:
        home.served_file.unlink(missing_ok=True)


def read_served(home: Home) -> Served | None:
    """Return what a home's file says, None if there is none or it makes no sense.

    Args:
        home: the home.
    """
    try:
        found = json.loads(home.served_file.read_text(encoding="utf-8"))
        port = found["questions_port"]
        served = Served(
            address=str(found["address"]),
            token=str(found["token"]),
            pid=int(found["pid"]),
            since=datetime.fromisoformat(found["since"]),
            home=Path(found["home"]),
            questions_port=None if port is None else int(port),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    good = _ADDRESS.fullmatch(served.address) and _TOKEN.fullmatch(served.token)
    return served if good else None


def find_served(home: Home) -> Served | None:
    """Return the server of a home; None if nobody serves it now.

    What a killed server has left is not believed: the file must name the process that holds the
    lock, and that process must live. Whoever takes the lock next removes the file.

    Args:
        home: the home.

    Raises:
        HomeMoved: the server works where the home was before.
    """
    served = read_served(home)
    if served is None or home.lock.held:
        return None
    holder = home.lock.other_holder()
    if holder is None or holder.pid != served.pid or not is_alive(holder.pid):
        return None
    if served.home != home.root:
        raise HomeMoved(home=home.root, before=served.home, pid=served.pid)
    return served


def remote_address(served: Served | None) -> str | None:
    """Return the address of the session to use, None for a local one; it may hold a token.

    Args:
        served: the server of the home; it counts where SPARK_REMOTE names no other.
    """
    return os.environ.get(REMOTE_VARIABLE) or (served.url if served is not None else None)
