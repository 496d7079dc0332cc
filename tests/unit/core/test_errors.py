"""Errors: what a person reads, and what survives the way from a worker to the driver."""

from __future__ import annotations

import pickle
import re
import tomllib
from pathlib import Path

import pytest

import delta_outbox
from delta_outbox.core import errors
from delta_outbox.core.errors import OutboxError

EXAMPLES: list[OutboxError] = [
    errors.NoJava(found="11"),
    errors.NoOutboxHere(where=".outbox"),
    errors.ToldError({"code": "NO_JAVA", "message": "Found: none.", "remedy": "Install Java."}),
    errors.HomeInUse(home=".outbox", pid=42),
    errors.ServerNeeded(home=".outbox"),
    errors.HomeMoved(home=".outbox", before="before/.outbox", pid=42),
    errors.NoLocks(file=".outbox/lock", cause="No locks available"),
    errors.ServerUnreachable(address="sc://localhost:15002", cause="connection refused"),
    errors.SessionClosed(),
    errors.StoragePrecondition("two writers on file://"),
    errors.DiskFull(table="outbox_events", cause="No space left on device"),
    errors.NotWritable(table="outbox_events", cause="Read-only file system"),
    errors.NotSynced(what="outbox", cause="Input/output error"),
    errors.TornCommit(file="outbox_events/_delta_log/00000000000000000007.json"),
    errors.DbtFailed("model outbox_state failed"),
    errors.WrongUsage("replay: `state` must be DEAD or PUBLISHED. Got: 'FOO'."),
    errors.UnknownEvent(event_id="e-1"),
    errors.BadSettings("relay: `batch_size` must be at least 1. Got: 0."),
    errors.BadPolicy(["row 1 ('*'), column `max_attempts`: must be a number. Got: 'x'", "more"]),
    errors.UnknownDestination(destination="kafka", known=["b", "a"]),
    errors.UnknownPublisher(destination="default", type_="kafak", known=["kafka"]),
    errors.PublisherUnavailable(destination="kafka", cause="connection refused"),
    errors.RejectedRows(["line 1", "line 2"]),
    errors.SequenceTaken(writer="outbox/0/0", number=7),
    errors.LaneClosed(writer="outbox/0/0", number=7, lane=0),
    errors.LogRewound(table="outbox_transitions", writer="outbox/0/0", number=7),
    errors.CommitsLost(table="outbox_events", version=12, head=11),
    errors.FormatTooNew(table="outbox_events", found=2, supported=1),
    errors.FormatTooOld(table="outbox_events", found=1, needed=2),
    errors.ChangeFeedGone(table="outbox_events", version=12),
]


def _classes() -> set[type[OutboxError]]:
    return {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, OutboxError) and item is not OutboxError
    }


def test_every_error_is_tried_here() -> None:
    """No class of error escapes the tests of this file."""
    assert {type(error) for error in EXAMPLES} == _classes()


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_code_is_the_name_in_capitals(error: OutboxError) -> None:
    """A code is the class name in capitals, so that code and class are found by each other."""
    expected = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()
    assert expected == type(error).code


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_has_a_message_a_remedy_and_an_exit_code(error: OutboxError) -> None:
    """A person always gets a sentence, a remedy of the error's own, and a known exit code."""
    shown = error.as_dict()
    assert {"code", "message", "remedy"} == set(shown)
    assert all(shown.values())
    assert shown["remedy"] != OutboxError.remedy
    assert error.exit_code in (1, 2)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling(error: OutboxError) -> None:
    """A worker's error arrives at the driver with its class, message, remedy and data."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(error) is type(copy)
    assert error.as_dict() == copy.as_dict()
    assert vars(error) == vars(copy)
    assert error.args == copy.args


def test_only_rejected_rows_end_with_1() -> None:
    """Exit code 1 means finished with something to look at; every other error means 2."""
    assert {errors.RejectedRows} == {cls for cls in _classes() if cls.exit_code == 1}


def test_retryable_is_a_property_of_the_class() -> None:
    """Only a lost race and an absent destination are worth the same try again."""
    expected = {errors.SequenceTaken, errors.LaneClosed, errors.PublisherUnavailable}
    assert expected == {cls for cls in _classes() if cls.retryable}


def test_a_remedy_can_fit_the_instance() -> None:
    """A remedy given with the instance replaces the class's, for this instance only."""
    error = errors.BadSettings("x", remedy="Unset it.")
    assert "Unset it." == error.as_dict()["remedy"]
    assert errors.BadSettings("x").remedy != "Unset it."


def test_home_in_use_names_the_holder() -> None:
    """The message names the process to stop, and the caller can read its id."""
    error = errors.HomeInUse(home=".outbox", pid=42)
    assert "The home .outbox is in use by process 42." == str(error)
    assert error.pid == 42


def test_names_in_a_message_are_sorted() -> None:
    """A message about the same situation is the same every time."""
    error = errors.UnknownDestination(destination="x", known={"b", "c", "a"})
    assert "The destination 'x' is not in the settings. Known: a, b, c." == str(error)


def test_the_version_is_the_distribution_s() -> None:
    """`__version__` and the version of the distribution are one."""
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    expected = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["version"]
    assert expected == delta_outbox.__version__
