"""Says which relays of this machine live: each holds a lock on a file of its own.

Advice for whoever stands by, as the heartbeat is, and quicker: the lock is free the moment the
process is gone. It says nothing of claims: what a dead relay was publishing may go on in the
server, so they end by their leases as ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from delta_outbox.runtime.file_lock import lock
from delta_outbox.runtime.home import PRIVATE_FILE, PRIVATE_FOLDER
from delta_outbox.runtime.home_lock import is_free
from delta_outbox.runtime.ownership import open_own

KEPT_SECONDS: Final = (
    3600.0  # what a killed relay leaves behind; its heartbeat is forgotten by then
)

Says = Mapping[str, int | str | None]


class Presence:
    """The relays that work from one home.

    Args:
        folder: holds their files; None if there is no home, and then nothing is known.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own: tuple[Path, int] | None = None
        self._text = b""

    def enter(self, relay_id: str) -> None:
        """Say that a relay of this process lives, until `leave` or the end of the process.

        Args:
            relay_id: the relay.
        """
        if self._folder is None or self._own is not None:
            return
        self._folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > KEPT_SECONDS and is_free(path):
                    path.unlink()
        path = self._path(relay_id)
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        lock(descriptor, fcntl.LOCK_EX, path=path)
        os.ftruncate(descriptor, 0)
        self._own, self._text = (path, descriptor), b""

    def say(self, says: Says) -> None:
        """Say something else of the relay than before.

        Args:
            says: for `words_of`.
        """
        text = json.dumps(says).encode()
        if self._own is not None and text != self._text:
            _, descriptor = self._own
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text, 0)
            self._text = text

    def leave(self) -> None:
        """Take it back."""
        if self._own is not None:
            (path, descriptor), self._own = self._own, None
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def there(self) -> list[str]:
        """Return the relays whose processes live."""
        if self._folder is None or not self._folder.is_dir():
            return []
        named = (unquote(path.name) for path in self._folder.iterdir())
        return sorted(relay_id for relay_id in named if self.is_there(relay_id))

    def is_gone(self, relay_id: str) -> bool:
        """Say whether a relay was here and its process has ended.

        Args:
            relay_id: the relay. Of one that was never here, on another machine for example, its
                heartbeat has to tell.
        """
        return self._is_free(relay_id) is True

    def is_there(self, relay_id: str) -> bool:
        """Say whether a relay was here and its process lives.

        Args:
            relay_id: the relay.
        """
        return self._is_free(relay_id) is False

    def words_of(self, relay_id: str) -> Says:
        """Return what a relay says of itself; nothing of one that works elsewhere.

        Args:
            relay_id: the relay.
        """
        if self._folder is None:
            return {}
        try:
            says: Says = json.loads(self._path(relay_id).read_bytes())
        except (OSError, ValueError):
            return {}
        return says

    def _is_free(self, relay_id: str) -> bool | None:
        """Say whether nobody holds the lock of a relay; None if there is none."""
        if self._folder is None:
            return None
        try:
            return is_free(self._path(relay_id))
        except FileNotFoundError:
            return None

    def _path(self, relay_id: str) -> Path:
        assert self._folder is not None
        return self._folder / quote(relay_id, safe="")
