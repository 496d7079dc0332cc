"""What code of authors does to its process stays in it, and is told as it was."""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.unit.workflow_engine.hosts.host_requests import (
    LIMIT,
    SECRET,
    calls_of,
    is_gone,
    made,
    processes_of,
    request,
    setup,
    shared_host,
    wait_for,
)
from tests.unit.workflow_engine.hosts.ledger import Ledger

from delta_outbox.core.clock import boot_time
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway import DEFAULT_EXIT, AtLeastOnce
from delta_outbox.railway.tasks import MOST_ATTEMPTS, default_back_off, pause
from delta_outbox.workflow_engine.hosts.host import OF_SERVICES
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool

NOTE = "the \"customer's\" words, für 'wen' auch immer, which no error may repeat"
UNSURE = Reason.UNKNOWN
DEEDS = {
    # what the author's code does: how the attempt ends, and what its error says
    "acts": (Reason.COMPLETED, ""),
    "certainly_not": (Reason.FAILED, "CertainlyNot: the card is blocked"),
    "refused": (Reason.REJECTED, "FinallyRefused: no such account"),
    "not_due": (Reason.RELEASED, "NotDue: closed at night"),
    "no_connection": (Reason.FAILED, "ConnectionRefusedError ("),
    "repeats": (Reason.FAILED, "CertainlyNot: *** *** is wrong"),
    "odd": (Reason.FAILED, "Odd: odd"),
    "unspeakable": (Reason.FAILED, "Unspeakable"),
    "error": (UNSURE, "ValueError ("),
    "exit": (UNSURE, "SystemExit ("),
    "interrupt": (UNSURE, "KeyboardInterrupt ("),
    "group": (UNSURE, "BaseExceptionGroup ("),
    "stop": (UNSURE, "("),
    "cancelled": (UNSURE, "CancelledError ("),
    "nothing": (UNSURE, "WrongValue: it returned None; it must return Decided with one of"),
    "a_word": (UNSURE, "WrongValue: it returned a value of str"),
    "other": (UNSURE, "WrongValue: it returned a value of Decided"),
    "no_json": (UNSURE, "no values of JSON"),
    "no_text": (UNSURE, "no values of JSON"),
    "too_much": (UNSURE, "more than"),
    "too_deep": (UNSURE, "more than 64 levels"),
    "far_too_deep": (UNSURE, "no values of JSON"),
    "prints": (Reason.COMPLETED, ""),
}
ENDS = {
    # what ends the process in the middle of a call: what is known of it
    "exits": "its host ended with exit code 3",
    "is_killed": "its host was killed by SIGKILL",
    "crashes": "its host was killed by SIGSEGV",
    "closes_all": "its host was killed by SIGKILL",
}


@pytest.mark.parametrize("does", DEEDS)
@pytest.mark.parametrize("workflow", ["by_thread", "by_loop", "awaitable"])
def test_whatever_code_raises_or_returns_is_told_as_it_was(
    hosts: HostPool, workflow: str, does: str
) -> None:
    """Each error and each value has its class of result, and its words hold nothing private."""
    reason, words = DEEDS[does]
    report = made(hosts, workflow, does=does, note=NOTE)
    assert reason == report.ending.reason
    said = str(report.ending.error or "")
    assert words in said
    assert all(one not in said for one in (NOTE, SECRET))
    if reason is Reason.COMPLETED:
        assert report.ending.decided is not None
        assert ("done", {"by": "us"}) == (
            report.ending.decided.outcome,
            report.ending.decided.data,
        )


@pytest.mark.parametrize(
    ("does", "seconds"),
    [
        ("odd", 9),  # it cannot be opened again: one like it is given
        ("error", 7),
        ("certainly_not", 9),
        ("no_connection", 10),
    ],
)
def test_a_decision_is_given_the_error_itself(hosts: HostPool, does: str, seconds: int) -> None:
    """`back_off` sees the class of the error, also where another process asks it."""
    report = made(hosts, "by_thread", does=does, note=NOTE)
    assert timedelta(seconds=seconds) == report.ending.pause


def test_on_fault_chooses_by_the_error(hosts: HostPool) -> None:
    """`on_fault` may choose an outcome or the default exit; a wrong choice is the declared one."""
    assert "not_done" == made(hosts, "by_thread", does="refused").on_fault
    wrong = made(hosts, "by_thread", does="refused", note="on_fault_is_wrong")
    assert wrong.on_fault is None
    assert ("on_fault: WrongValue: it returned a value of str; the default counts",) == (
        wrong.remarks
    )
    over = made(hosts, "by_thread", does="needed_no_more")
    assert Reason.EXPIRED == over.ending.reason
    history = {"attempts": 3, "stopped": True}
    stopped = made(hosts, "by_thread", history=history)
    assert (Reason.EXHAUSTED, DEFAULT_EXIT) == (stopped.ending.reason, stopped.on_fault)


def test_closing_leaves_decisions_their_second(third_party: Ledger, tmp_path: Path) -> None:
    """Where a task goes for good is decided by its author, also while hosts close."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    closing = threading.Thread(target=hosts.close)
    try:
        go_on = tmp_path / "go_on"
        port = third_party.port
        one = request("by_thread", does="refuses_late", note=str(go_on), port=port)
        submitted = hosts.submit(one)
        wait_for(lambda: one.task_id in third_party.read())
        closing.start()
        wait_for(lambda: hosts.room("by_thread", "by_thread") == 0)
        go_on.touch()
        report = submitted.result(LIMIT)
        assert Reason.REJECTED == report.ending.reason
        assert ("not_done", ()) == (report.on_fault, report.remarks)
    finally:
        hosts.close()
        if closing.ident is not None:
            closing.join()


def test_a_decision_that_goes_wrong_is_its_default(hosts: HostPool) -> None:
    """A decision that raises is on record as a remark, and the declared default counts."""
    report = made(hosts, "by_thread", does="certainly_not", note="back_off_exits")
    assert default_back_off(1) == report.ending.pause
    [remark] = report.remarks
    assert remark.startswith("back_off: SystemExit (")


def test_the_default_of_a_back_off_follows_the_compromise() -> None:
    """Only under `AtLeastOnce` is there no last attempt."""
    assert pause(MOST_ATTEMPTS) == default_back_off(MOST_ATTEMPTS, AtLeastOnce())
    assert default_back_off(MOST_ATTEMPTS) is None


def test_two_steps_are_taken_by_real_calls(hosts: HostPool) -> None:
    """Who takes over undoes the older first step, and stops where that is not certain."""
    done = made(hosts, "in_two_steps").ending
    assert Reason.COMPLETED == done.reason
    assert done.decided is not None
    assert {"step": "mine"} == done.decided.data
    assert UNSURE == made(hosts, "in_two_steps", does="undo_fails").ending.reason


@pytest.mark.parametrize("does", ["long_reference", "long_references", "many_steps"])
def test_an_answer_that_is_too_long_ends_nobody_else(
    hosts: HostPool, does: str, tmp_path: Path
) -> None:
    """What does not fit into an answer is a fault of the one call that has returned it."""
    go_on = tmp_path / "go_on"
    beside = hosts.submit(request("by_loop", does="waits_for", note=str(go_on)))
    host = shared_host(hosts)
    ending = made(hosts, "in_two_steps", does=does).ending
    assert ending.reason in {UNSURE, Reason.FAILED}
    assert "more than" in str(ending.error)
    assert not beside.done()
    assert host == shared_host(hosts)
    go_on.touch()
    assert Reason.COMPLETED == beside.result(LIMIT).ending.reason


def test_what_ends_without_a_call_says_nothing_of_its_third_party(hosts: HostPool) -> None:
    """A black box that may have acted ends as uncertain, and its third party was not asked."""
    report = made(hosts, "alone", history={"attempts": 1, "executions": 1})
    assert (Reason.UNCERTAIN, False) == (report.ending.reason, report.is_verdict)
    assert made(hosts, "alone").is_verdict
    assert not made(hosts, "by_thread", does="not_due").is_verdict


def test_what_an_earlier_attempt_did_is_found(hosts: HostPool) -> None:
    """A look-up that finds an outcome ends the task with it."""
    found = made(hosts, "by_thread", does="lookup_finds").ending
    assert found.decided is not None
    assert "not_done" == found.decided.outcome


@pytest.mark.parametrize(
    "does", ["exits", *(pytest.param(one, marks=pytest.mark.rest) for one in [*ENDS][1:])]
)
def test_a_host_that_dies_is_replaced(hosts: HostPool, does: str) -> None:
    """A call whose process ends may have acted; the next one has another process."""
    report = made(hosts, "by_thread", does=does, note=NOTE)
    assert (UNSURE, f"no answer: {ENDS[does]}") == (report.ending.reason, str(report.ending.error))
    assert report.ending.pause is None  # `back_off` was told that there was no word
    assert Reason.COMPLETED == made(hosts, "by_thread").ending.reason


@pytest.mark.rest
def test_a_child_of_an_author_does_not_speak_for_the_host(hosts: HostPool) -> None:
    """Code that forks, and comes back twice, is answered once, and its host goes on."""
    host = shared_host(hosts)
    assert Reason.COMPLETED == made(hosts, "by_thread", does="forks").ending.reason
    assert Reason.COMPLETED == made(hosts, "by_loop", does="forks").ending.reason
    assert host == shared_host(hosts)
    wait_for(lambda: all(map(is_gone, host.children()[1:])))  # the first is its guard


def test_signals_to_a_whole_service_end_no_call(
    hosts: HostPool, third_party: Ledger, tmp_path: Path
) -> None:
    """Where whoever stops a service signals each process of it, hosts and what guards them go on:
    the relay finishes what is in flight. What code of authors forks can be ended as ever.
    """
    go_on = tmp_path / "go_on"
    one = request("by_loop", does="waits_for", note=str(go_on), port=third_party.port)
    submitted = hosts.submit(one)
    wait_for(lambda: one.task_id in third_party.read())
    host = shared_host(hosts)
    processes = [host, *host.children()[:1]]  # its guard
    for process, number in itertools.product(processes, OF_SERVICES):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    go_on.touch()
    assert Reason.COMPLETED == submitted.result(LIMIT).ending.reason
    assert not any(map(is_gone, processes))
    assert Reason.COMPLETED == made(hosts, "by_thread", does="ends_what_it_forks").ending.reason


def test_standard_streams_are_the_author_s(hosts: HostPool) -> None:
    """A host whose standard streams are closed carries out calls still."""
    assert Reason.COMPLETED == made(hosts, "by_thread", does="closes").ending.reason
    assert Reason.COMPLETED == made(hosts, "by_thread").ending.reason


@pytest.mark.parametrize(
    ("workflow", "does"),
    [
        ("by_thread", "blocks"),
        pytest.param("by_loop", "blocks", marks=pytest.mark.rest),
        pytest.param("by_loop", "will_not_be_cancelled", marks=pytest.mark.rest),
        pytest.param("by_thread", "holds_the_interpreter", marks=pytest.mark.rest),
        pytest.param("awaitable", "blocks", marks=pytest.mark.rest),
    ],
)
def test_a_call_over_its_limit_ends_with_its_host(
    hosts: HostPool, third_party: Ledger, workflow: str, does: str
) -> None:
    """What does not yield is ended by force; what ran beside it may have acted, and is told why."""
    port = third_party.port
    beside = request("by_loop", does="waits", port=port)
    waiting = hosts.submit(beside)
    wait_for(lambda: beside.task_id in third_party.read())
    host = shared_host(hosts)
    report = made(hosts, workflow, does=does, limit=0.2)
    assert UNSURE == report.ending.reason
    assert "no answer: it did not end within its time limit of 0.2 seconds" == str(
        report.ending.error
    )
    assert is_gone(host)
    other = waiting.result(LIMIT)
    late = f"{workflow}/{workflow}.attempt did not end within its time limit of 0.2 seconds"
    assert (UNSURE, f"no answer: {late}") == (
        other.ending.reason,
        str(other.ending.error),
    )
    assert (True, False) == (report.is_verdict, other.is_verdict)  # the other had not its time


def test_an_asynchronous_call_is_cancelled_first() -> None:
    """A call that yields is ended alone; what runs beside it, and its host, go on. One that is
    ended because hosts close has not had its time.
    """
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    try:
        beside = hosts.submit(request("by_loop", does="waits"))
        host = shared_host(hosts)
        report = made(hosts, "by_loop", does="waits", limit=0.2)
        assert UNSURE == report.ending.reason
        assert "no answer: it did not end within its time limit of 0.2 seconds" == str(
            report.ending.error
        )
        assert host == shared_host(hosts)
        assert not beside.done()
    finally:
        hosts.close()
    cut = beside.result(LIMIT)
    assert (UNSURE, "no answer: it was cancelled") == (cut.ending.reason, str(cut.ending.error))
    assert (True, False) == (report.is_verdict, cut.is_verdict)


@pytest.mark.parametrize("does", ["still_needed_hangs", "lookup_hangs"])
def test_a_question_that_hangs_ends_nobody_else(hosts: HostPool, does: str, tmp_path: Path) -> None:
    """A question goes unanswered, and its host is ended only when nothing acts in it."""
    go_on = tmp_path / "go_on"
    beside = hosts.submit(request("by_loop", does="waits_for", note=str(go_on)))
    host = shared_host(hosts)
    report = made(hosts, "by_thread", does=does, limit=0.5)
    if does == "lookup_hangs":
        assert Reason.EXHAUSTED == report.ending.reason  # `back_off` gives up without a word
    else:
        assert Reason.COMPLETED == report.ending.reason
        assert (
            "still_needed: no answer: it did not end within its time limit of 1 seconds; "
            "the default counts"
        ) == report.remarks[0]
    assert not beside.done()
    assert host.is_running()
    go_on.touch()
    assert Reason.COMPLETED == beside.result(LIMIT).ending.reason
    wait_for(lambda: is_gone(host))


def test_nothing_begins_after_its_deadline(hosts: HostPool, third_party: Ledger) -> None:
    """A call past its deadline is not made, and the attempt counts as none."""
    late = request("by_loop", port=third_party.port, deadline=-1)
    assert Reason.RELEASED == hosts.submit(late).result(LIMIT).ending.reason
    assert late.task_id not in third_party.read()


@pytest.mark.parametrize("unsure", [{}, {"history": {"executions": 1}, "expires": -1.0}])
def test_the_deadline_is_looked_at_last(
    hosts: HostPool, third_party: Ledger, unsure: dict[str, Any]
) -> None:
    """A host that was frozen past the deadline of a call does not make it. The third party was not
    asked, so that this is no answer of it either where it was to be asked for the last time.
    """
    host = shared_host(hosts)
    host.suspend()
    late = request("by_loop", port=third_party.port, deadline=1, **unsure)
    submitted = hosts.submit(late)
    wait_for(lambda: calls_of(hosts) == 1 and boot_time() >= late.deadline)
    host.resume()
    assert Reason.RELEASED == submitted.result(LIMIT).ending.reason
    assert late.task_id not in third_party.read()


def test_a_key_is_used_again_only_as_long_as_it_is_remembered(
    hosts: HostPool, third_party: Ledger
) -> None:
    """A call with a key that an earlier attempt may have used begins while the key lives, however
    long it waits for its host; then it is not made.
    """
    host, seconds = shared_host(hosts), 3
    again = request("by_loop", port=third_party.port, limit=1, history={"executions": 1})
    valid = again.limits.time_limit + again.limits.settles + timedelta(seconds=seconds)
    again = replace(again, limits=replace(again.limits, key_valid=valid))
    forgotten_at = boot_time() + seconds
    host.suspend()
    submitted = hosts.submit(again)
    wait_for(lambda: calls_of(hosts) == 1 and boot_time() >= forgotten_at)
    host.resume()
    assert Reason.RELEASED == submitted.result(LIMIT).ending.reason
    assert again.task_id not in third_party.read()


def test_a_thousand_calls_share_a_host(
    hosts: HostPool, third_party: Ledger, tmp_path: Path
) -> None:
    """A thousand short calls share a host beside each other; a slow one slows only itself."""
    host = shared_host(hosts)
    go_on = tmp_path / "go_on"
    slow = request("by_loop", does="waits_for", note=str(go_on), port=third_party.port)
    waiting = hosts.submit(slow)
    requests = [request("by_loop", port=third_party.port) for _ in range(999)]
    assert 999 == hosts.room("by_loop", "by_loop")
    submitted = [hosts.submit(one) for one in requests]
    assert {Reason.COMPLETED} == {one.result(LIMIT).ending.reason for one in submitted}
    assert {slow.task_id, *(one.task_id for one in requests)} <= set(third_party.read())
    assert not waiting.done()
    assert host == shared_host(hosts)
    go_on.touch()
    assert Reason.COMPLETED == waiting.result(LIMIT).ending.reason


def test_a_black_box_has_a_host_to_itself(
    hosts: HostPool, third_party: Ledger, tmp_path: Path
) -> None:
    """As many black boxes run as there are processes for them, and beside none of them another."""
    assert 2 == hosts.room("alone", "alone")
    shared = shared_host(hosts)
    port, files = third_party.port, [tmp_path / "first", tmp_path / "second"]
    requests = [request("alone", does="blocks_until", note=str(one), port=port) for one in files]
    submitted = [hosts.submit(one) for one in requests]
    assert 0 == hosts.room("alone", "alone")
    assert Reason.RELEASED == made(hosts, "alone").ending.reason
    wait_for(lambda: {one.task_id for one in requests} <= set(third_party.read()))
    assert {shared} < set(processes_of())
    assert 3 == len(processes_of())
    files[0].touch()
    assert Reason.COMPLETED == submitted[0].result(LIMIT).ending.reason
    assert not submitted[1].done()
    assert 1 == hosts.room("alone", "alone")
    again = made(hosts, "alone").ending
    assert Reason.COMPLETED == again.reason
    files[1].touch()
    assert Reason.COMPLETED == submitted[1].result(LIMIT).ending.reason


@pytest.mark.rest
def test_code_that_ends_the_loop_beside_it_ends_nothing(hosts: HostPool) -> None:
    """SystemExit in a task that an author's code has left beside it does not end the host."""
    host = shared_host(hosts)
    assert Reason.COMPLETED == made(hosts, "by_loop", does="exits_beside").ending.reason
    assert Reason.COMPLETED == made(hosts, "by_loop").ending.reason
    assert host.is_running()
