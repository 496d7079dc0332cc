"""JSON lines in a folder: a destination that needs nothing but a disk.

Each `open` writes a file of its own, so writers never share one. A line counts when its newline
is there: after a crash the last line of a file may be torn, and readers leave it out
(`read_lines` does).
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from delta_outbox.core.disk import make_folder, sync_descriptor, sync_path
from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Result,
    Unknown,
)
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import Event, EventBatch

logger = logging.getLogger(__name__)

DEFAULT_FOLDER: Final = "delivered"
_CHUNK: Final = 1000  # events between two looks at the clock
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonlPublisher:
    """Write one JSON line per event; a line is Delivered once it is on the disk (fsync)."""

    ordered: ClassVar[bool] = True
    cloudevents: ClassVar[Transport] = Transport.UNBOUND

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._file: int | None = None
        self._name = ""
        self._size = 0  # bytes known to be on the disk

    @classmethod
    def prepare(cls, settings: Mapping[str, object], home: Path) -> dict[str, object]:
        """Make `path` absolute: relative to the home, `delivered` if it is not given.

        Args:
            settings: as written in the settings file.
            home: the folder of the outbox.
        """
        path = settings.get("path", DEFAULT_FOLDER)
        if not isinstance(path, str) or not path.strip():
            return dict(settings)
        return {**settings, "path": str(home.absolute() / Path(path).expanduser())}

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Refuse anything but a `path`."""
        unknown = sorted(set(settings) - {"path"})
        if unknown:
            raise ValueError(f"jsonl: the only setting is `path`. Got: {', '.join(unknown)}.")
        path = settings.get("path")
        if not isinstance(path, str) or not path.strip():
            raise ValueError("jsonl: `path` must name a folder.")

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise if the folder cannot be written to.

        Args:
            settings: prepared settings.
            timeout: not needed, a disk answers at once.
        """
        folder = Path(str(settings["path"]))
        try:
            make_folder(folder)
        except OSError as error:
            raise ConnectionError(_sentence(folder, error)) from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConnectionError(f"the folder {folder} is not writable.")

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; the file appears with the first event."""
        self.validate(settings)
        self._folder = Path(str(settings["path"])).expanduser().absolute()

    def publish(self, events: EventBatch) -> list[Result]:
        """Append the events and wait for the disk once; NotSent from the deadline on."""
        start, unfit = self._size, _Unfit()
        offsets: list[int | None] = []  # of each line; None: there is none
        try:
            if not events or time.monotonic() >= events.deadline:
                return [NotSent()] * len(events)
            file = self._opened()
            for at in range(0, len(events), _CHUNK):
                if time.monotonic() >= events.deadline:
                    break
                lines = [unfit.line_of(event) for event in events[at : at + _CHUNK]]
                _write(file, b"".join(line for line in lines if line is not None))
                for line in lines:
                    offsets.append(None if line is None else self._size)
                    self._size += len(line or b"")
            sync_descriptor(file)
        except OSError as error:
            return self._undo(start, error, len(events))
        prefix = f'{{"file":{_encode(self._name)},"offset":'
        results: list[Result] = [
            unfit.results[event.delivery_id]
            if offset is None
            else Delivered(receipt=JsonText(f"{prefix}{offset}}}"))
            for event, offset in zip(events, offsets, strict=False)
        ]
        return results + [NotSent()] * (len(events) - len(results))

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _opened(self) -> int:
        if self._file is None:
            if self._folder is None:
                raise RuntimeError("JsonlPublisher: `open` comes before `publish`.")
            make_folder(self._folder)
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            self._name = f"{stamp}-{uuid.uuid4().hex}.jsonl"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self._folder / self._name, flags, 0o666)
            sync_path(self._folder)  # the file's name must survive a power cut as its lines do
        return self._file

    def _undo(self, start: int, error: OSError, count: int) -> list[Result]:
        """Take back lines that may not be on the disk: what is certainly gone has Failed."""
        self._size = start
        sentence = _sentence(self._folder, error)
        if self._file is None:
            return [Failed(error=sentence)] * count
        try:
            os.ftruncate(self._file, start)
            sync_descriptor(self._file)
        except OSError:
            logger.warning("jsonl_not_undone", extra={"file": self._name, "events": count})
            with contextlib.suppress(OSError):
                self.close()  # nothing may follow a line that may be torn
            return [Unknown(error=sentence)] * count
        return [Failed(error=sentence)] * count


def read_lines(folder: Path | str) -> Iterator[dict[str, Any]]:
    """Yield what was delivered below a folder: files by name, lines in order, torn ones left out.

    Args:
        folder: the `path` of the destination.
    """
    for file in sorted(Path(folder).rglob("*.jsonl")):
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)


class _Unfit:
    """The events of a call that have no line: their text has no form in UTF-8."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}
        self._held: set[str] = set()  # keys of which nothing may follow

    def line_of(self, event: Event) -> bytes | None:
        """Return the line of an event; None if it has none, or one of its key had none."""
        key = event.ordered_key
        if key is not None and key in self._held:
            self.results[event.delivery_id] = NotSent()
            return None
        try:
            return _line(event)
        except UnicodeEncodeError:
            self.results[event.delivery_id] = Rejected(error="a text of it has no form in UTF-8")
            if key is not None:
                self._held.add(key)
            return None


def _line(event: Event) -> bytes:
    line: dict[str, object] = {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "key": event.key,
        "headers": dict(event.headers or {}),
    }
    try:
        line["payload"] = event.payload.decode("utf-8")
    except UnicodeDecodeError:
        line["payload_base64"] = base64.b64encode(event.payload).decode("ascii")
    line["lifecycle"] = event.lifecycle
    return _encode(line).encode("utf-8") + b"\n"


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sentence(folder: Path | None, error: OSError) -> str:
    return f"the folder {folder} cannot be written: {error.strerror or type(error).__name__}"
