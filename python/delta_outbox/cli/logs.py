"""Logs on standard error: an event word and key=value, one line each."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import traceback
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

from delta_outbox.core.redaction import without_named_secrets

PACKAGE = "delta_outbox"

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_PLAIN = re.compile(r"[\w.:/@+*,-]+", re.ASCII)


class LineFormatter(logging.Formatter):
    """One record, one line: time, level, event word, then what `extra` held.

    Args:
        traces: show the trace of an exception; without it, only its type.
    """

    def __init__(self, *, traces: bool = False) -> None:
        super().__init__()
        self._traces = traces

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a trace follows below it."""
        at = datetime.fromtimestamp(record.created, UTC)
        words = [f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z", record.levelname.lower()]
        if record.name.split(".")[0] == PACKAGE:
            words.append(_value(record.getMessage()))
        else:
            words += [f"logger={_value(record.name)}", f"message={_value(record.getMessage())}"]
        words += [
            f"{name}={_value(value, name=name)}"
            for name, value in record.__dict__.items()
            if name not in _STANDARD
        ]
        exception = record.exc_info[1] if record.exc_info else None
        if exception is not None:
            words.append(f"exception={type(exception).__name__}")
        line = " ".join(words)
        if exception is None or not self._traces:
            return line
        trace = "".join(traceback.format_exception(exception)).rstrip()
        return f"{line}\n{without_named_secrets(trace)}"


def _value(value: object, *, name: str = "") -> str:
    """Write a value so that a line stays a line, and control characters and whatever is called a
    password stay out of it.
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    text = without_named_secrets(f"{name}={value}").removeprefix(f"{name}=")
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


@contextlib.contextmanager
def logging_to(stream: TextIO, *, verbose: int = 0, debug: bool = False) -> Iterator[None]:
    """Send the logs of this process to a stream, for a block.

    Args:
        stream: standard error.
        verbose: 0 warnings, 1 what happens, 2 in detail.
        debug: in detail, and with traces.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(traces=debug))
    root, ours = logging.getLogger(), logging.getLogger(PACKAGE)
    py4j = logging.getLogger("py4j")  # at other levels it logs every call into the JVM
    before = [(logger, logger.level) for logger in (root, ours, py4j)]
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    py4j.setLevel(logging.ERROR)
    detail = [logging.WARNING, logging.INFO, logging.DEBUG]
    ours.setLevel(logging.DEBUG if debug else detail[min(verbose, 2)])
    try:
        yield
    finally:
        root.removeHandler(handler)
        for logger, level in before:
            logger.setLevel(level)


def quieten_pyspark() -> None:
    """Keep pyspark from printing every error that we catch, with the query's text, by itself."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # A server that is gone becomes an error of ours.
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
