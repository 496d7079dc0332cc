"""The ends of commands: documents, texts, exit codes, logs, signals."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import signal
import subprocess
import sys
import threading

import pytest

from delta_outbox.cli import append, relay
from delta_outbox.cli import command as running
from delta_outbox.cli.logs import LineFormatter, logging_to
from delta_outbox.cli.main import main
from delta_outbox.cli.outcome import Outcome, UnexpectedError
from delta_outbox.cli.progress import LINE_INTERVAL, Lines
from delta_outbox.cli.serve import suggest_up
from delta_outbox.cli.signals import stop_on_signals
from delta_outbox.operations.command_life import command_shown
from delta_outbox.operations.event_life import content_shown
from delta_outbox.producer.append import AppendReport
from delta_outbox.producer.rejection import Rejection
from delta_outbox.relay import Summary
from delta_outbox.runtime.interrupts import INTERRUPTED


def run(monkeypatch: pytest.MonkeyPatch, words: list[str], command: object) -> int:
    """Run a command line whose command is replaced."""
    monkeypatch.setattr(running, "COMMANDS", {words[0]: command})
    return main(words)


@pytest.mark.parametrize(
    ("summary", "is_continuous", "expected"),
    [
        (Summary(claimed=3, published=3), False, 0),
        (Summary(claimed=3, published=2, dead=1), False, 1),
        (Summary(claimed=3, published=2, waiting=1), False, 1),
        (Summary(claimed=3, retried=3, released=1), False, 0),
        (Summary(claimed=3, dead=1, waiting=1), True, 0),
    ],
)
def test_exit_code_of_a_relay(summary: Summary, is_continuous: bool, expected: int) -> None:
    """What died or waits is something to look at; a relay that was told to stop is done."""
    outcome = relay.outcome_of(summary, is_continuous=is_continuous)
    assert expected == outcome.exit_code
    names = ["claimed", "published", "retried", "dead", "released", "waiting", "duration_seconds"]
    assert names == list(outcome.document)


def test_report_of_an_append() -> None:
    """An append reports counts and every rejection; rejected rows end it with 1."""
    assert 0 == append.outcome_of(2, 1, ()).exit_code
    report = AppendReport(
        rejected=(Rejection(line=3, field="event_id", rule="required", message="must ..."),)
    )
    outcome = append.outcome_of(report.appended, report.already_present, report.rejected)
    assert 1 == outcome.exit_code
    expected = {
        "appended": 0,
        "already_present": 0,
        "rejected": [{"line": 3, "field": "event_id", "rule": "required", "message": "must ..."}],
    }
    assert expected == outcome.document


def test_one_document_whatever_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json standard output holds the one document, even if a library prints."""

    def noisy(*_: object) -> Outcome:
        sys.stdout.write("noise\n")
        logging.getLogger("delta_outbox.test").warning("noise", extra={"n": 1})
        return Outcome(document={"text": "é\x1b[31m"}, exit_code=1)

    assert 1 == run(monkeypatch, ["status", "--json"], noisy)
    captured = capsys.readouterr()
    assert {"text": "é\x1b[31m"} == json.loads(captured.out)
    assert "\x1b" not in captured.out
    assert "noise\n" in captured.err
    assert "warning noise n=1" in captured.err


def test_an_unforeseen_error_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug ends with 2, its type and first line, without a trace."""

    def broken(*_: object) -> Outcome:
        raise KeyError("first\nsecond")

    assert 2 == run(monkeypatch, ["status", "--json"], broken)
    captured = capsys.readouterr()
    assert "UNEXPECTED_ERROR" == json.loads(captured.out)["error"]["code"]
    assert "Traceback" not in captured.err


def test_an_error_that_cannot_say_what_it_is() -> None:
    """An error whose text needs a Spark that is gone is still named by its type."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise AssertionError

    assert "MuteError" == str(UnexpectedError.of(MuteError()))


def test_an_interrupt_is_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C before a relay runs ends with 130 and one sentence."""

    def interrupted(*_: object) -> Outcome:
        raise KeyboardInterrupt

    assert INTERRUPTED == run(monkeypatch, ["status"], interrupted)
    assert capsys.readouterr().err.startswith("INTERRUPTED: ")


def test_errors_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters that a message quotes arrive escaped."""
    assert 2 == main(["\x1b]0;owned\x07"])
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert "\x07" not in error


def test_log_lines_are_one_line_each() -> None:
    """A record is one line: event word, then key=value, control characters escaped."""
    stream = io.StringIO()
    logger = logging.getLogger("delta_outbox.test")
    with logging_to(stream, verbose=1):
        logger.info("batch", extra={"size": 3, "path": "a b\n\x1b[2J", "rate": 0.5, "none": None})
        logger.debug("hidden")
        logging.getLogger("kafka").warning("broker %s down\n", "b1")
        try:
            raise ValueError("secret")
        except ValueError:
            logger.exception("failed")
    lines = stream.getvalue().splitlines()
    assert 3 == len(lines)
    assert lines[0].endswith('info batch size=3 path="a b\\n\\u001b[2J" rate=0.5 none=null')
    assert lines[1].endswith('warning logger=kafka message="broker b1 down\\n"')
    assert lines[2].endswith("error failed exception=ValueError")
    logger.warning("afterwards")
    assert 3 == len(stream.getvalue().splitlines())


def test_a_spark_of_its_own_is_said_where_people_look() -> None:
    """A command that started a Spark says that `outbox up` makes the next ones fast: a sentence at
    a terminal, elsewhere a line at level info.
    """
    quiet, told = io.StringIO(), io.StringIO()
    for stream, verbose in ((quiet, 0), (told, 1)):
        with logging_to(stream, verbose=verbose):
            suggest_up(stream)
    assert "" == quiet.getvalue()
    assert told.getvalue().endswith('info spark_of_its_own faster="outbox up"\n')
    reader, terminal = pty.openpty()
    with os.fdopen(reader) as shown, os.fdopen(terminal, "w") as screen:
        suggest_up(screen)
        assert "`outbox up` makes the next ones fast." in shown.readline()


def test_debug_shows_the_trace() -> None:
    """The trace of an exception belongs to --debug."""
    try:
        raise ValueError("cause")
    except ValueError:
        record = logging.LogRecord(
            "delta_outbox", logging.ERROR, "", 0, "failed", (), sys.exc_info()
        )
    assert "ValueError: cause" in LineFormatter(traces=True).format(record)
    assert "cause" not in LineFormatter().format(record)


def test_no_line_and_no_trace_shows_what_is_called_a_password() -> None:
    """What a line or a trace calls a password, and the user in a URL, are hidden."""
    try:
        raise ValueError("password=hunter2 at https://me:hunter2@host/")
    except ValueError:
        record = logging.LogRecord(
            "kafka", logging.ERROR, "", 0, "token: hunter2", (), sys.exc_info()
        )
    record.__dict__["api_key"] = "hunter2"
    shown = LineFormatter(traces=True).format(record)
    assert 'message="token: ***" api_key=*** exception=ValueError' in shown
    assert "ValueError: password=*** at https://***@host/" in shown
    assert "hunter2" not in shown
    assert "hunter2" not in str(UnexpectedError.of(ValueError("password='hunter2'")))


def test_progress_lines_are_rare() -> None:
    """Without a terminal progress is a line every few seconds, and none if nothing changed."""
    now = [0.0]
    stream = io.StringIO()
    lines = Lines(stream, lambda: now[0])
    lines(Summary(claimed=1))
    assert "" == stream.getvalue()
    now[0] = LINE_INTERVAL
    lines(Summary(claimed=1200, published=2))
    lines(Summary(claimed=1300, published=2))
    now[0] = 3 * LINE_INTERVAL
    lines(Summary(claimed=1200, published=2))
    assert "claimed 1,200, published 2, retried 0, dead 0\n" == stream.getvalue()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_to_stop(number: signal.Signals) -> None:
    """SIGTERM and Ctrl-C set the event and raise nothing; afterwards all is as before."""
    before = signal.getsignal(number)
    with stop_on_signals(sys.stderr) as stop:
        os.kill(os.getpid(), number)
        assert stop.wait(5)
    assert before == signal.getsignal(number)


def test_a_second_interrupt_ends_at_once() -> None:
    """Ctrl-C twice ends the process, and says what becomes of the claims."""
    code = (
        "import os, signal, sys, time\n"
        "from delta_outbox.cli.signals import stop_on_signals\n"
        "with stop_on_signals(sys.stderr):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(30)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=25
    )
    assert INTERRUPTED == done.returncode
    assert "leases" in done.stderr


def test_no_handlers_outside_the_main_thread() -> None:
    """A relay on a thread leaves the process's signals alone."""
    before = signal.getsignal(signal.SIGTERM)
    seen: list[bool] = []

    def work() -> None:
        with stop_on_signals(sys.stderr) as stop:
            seen.append(not stop.is_set() and before == signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [True] == seen


def test_content_is_shown_only_on_demand() -> None:
    """Payload and values of headers need --payload; bytes that are no text become base64."""
    content = {"payload": b'{"a":1}', "headers": {"b": "secret", "a": ""}, "metadata": {"m": "1"}}
    hidden = content_shown(content, with_payload=False)
    assert {"metadata": {"m": "1"}, "header_names": ["a", "b"], "payload_bytes": 7} == hidden
    shown = content_shown(content, with_payload=True)
    assert ('{"a":1}', content["headers"]) == (shown["payload"], shown["headers"])
    binary = content_shown({**content, "payload": b"\xff"}, with_payload=True)
    assert "/w==" == binary["payload_base64"]
    assert "payload" not in binary


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"done": 2}, "done"),
        ({"done": 2, "waiting": 1, "refused": 1}, "waiting"),
        ({"done": 1, "refused": 2}, "done"),
        ({"refused": 2}, "refused"),
    ],
)
def test_the_status_of_a_command(counts: dict[str, int], expected: str) -> None:
    """A command waits while any of its deliveries does; it is refused only if nothing was done."""
    given: dict[str, object] = {"command_id": "c", "kind": "kill", "actor": "me", "reason": "r"}
    shown = command_shown(given, counts, [{"event_id": "a", "status": "done"}])
    assert expected == shown["status"]
    assert {"done": 0, "waiting": 0, "refused": 0} | counts == shown["counts"]
    assert shown["more"] == (sum(counts.values()) > 1)


def test_a_reader_that_has_enough() -> None:
    """`outbox ... | head` ends quietly."""
    code = "import sys; from delta_outbox.cli.main import main; sys.exit(main(['--json']))"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert b"" == done.stderr
    assert 141 == done.returncode
