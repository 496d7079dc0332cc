"""What SQS refuses, what it does not answer, and what is said about it."""

from __future__ import annotations

import json
import threading
import time
from urllib.parse import urlparse

import pytest
from tests.publishers.proxy import Proxy
from tests.publishers.sqs_server import refusal
from tests.publishers.timing import GRACE, MIDDLE

from delta_outbox.publishers import Delivered, Failed, NotSent, Rejected, Unknown


def kinds_of(results):
    """Return the classes of results."""
    return {type(result) for result in results}


@pytest.mark.parametrize(
    ("code", "sender_fault", "kind"),
    [
        ("InternalError", False, Failed),
        ("InvalidMessageContents", True, Rejected),
        ("InvalidParameterValue", True, Rejected),
        ("AccessDenied", True, Failed),
        ("KmsDisabled", True, Failed),
        ("RequestThrottled", True, Failed),
    ],
)
def test_partial_failures(
    code, sender_fault, kind, front, new_sqs_queue, open_sqs, new_event, publish
):
    """Every entry of an answer has its own result: the sender's fault is rejected unless an
    operator or time can mend it; what the answer leaves out is unknown.
    """

    def answer(request):
        ids = [entry["Id"] for entry in request["Entries"]]
        failed = {"Id": ids[1], "Code": code, "Message": "why", "SenderFault": sender_fault}
        taken = [
            {"Id": one, "MessageId": f"m{one}", "MD5OfMessageBody": ""} for one in (ids[3], ids[0])
        ]
        body = json.dumps({"Successful": taken, "Failed": [failed]})
        return 200, {"Content-Type": "application/x-amz-json-1.0"}, body.encode()

    front.answer = answer
    queue = new_sqs_queue()
    results = publish(open_sqs(endpoint_url=front.url), [new_event(queue) for _ in range(4)])
    assert [type(result) for result in results] == [Delivered, kind, Unknown, Delivered]
    assert f"why ({code})" in results[1].error
    assert [results[0].receipt, results[3].receipt] == [{"message_id": "m0"}, {"message_id": "m3"}]
    assert len(front.requests) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "ThrottlingException", Failed),
        (403, "AccessDenied", Failed),
        (403, "ExpiredToken", Failed),
        (400, "KmsThrottled", Failed),
        (400, "QueueDoesNotExist", Failed),
        (429, "TooManyRequests", Failed),
        (500, "InternalFailure", Unknown),
        (500, "InvalidParameterValue", Unknown),
        (507, "Strange", Unknown),
        (503, "ServiceUnavailable", Failed),
        (502, "BadGateway", Unknown),
        (504, "GatewayTimeout", Unknown),
    ],
)
def test_refused_requests(
    status, code, kind, front, new_sqs_queue, open_sqs, new_event, publish, taken
):
    """A request that is refused as a whole is made once, and its events share the result; a server
    that broke on the way, and a gateway before it, prove nothing.
    """
    front.answer = lambda _: refusal(status, code, Retry_After="7")
    queue = new_sqs_queue()
    one = open_sqs(endpoint_url=front.url)
    results = publish(one, [new_event(queue) for _ in range(3)])
    assert [type(result) for result in results] == [kind] * 3
    assert code in results[0].error
    if kind is Failed:
        assert results[0].retry_after == 7
    assert len(front.requests) == 1
    assert taken(queue) == []
    front.answer = lambda _: None
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


def test_a_bad_message_is_found(new_sqs_queue, open_sqs, new_event, publish, taken):
    """Where SQS refuses a request because of a message and does not say which, the guilty one is
    rejected and the others are delivered once.
    """
    queue = new_sqs_queue(MaximumMessageSize="2000")
    events = [new_event(queue, payload=b"x" * (3000 if n in (4, 17) else 10)) for n in range(25)]
    results = publish(open_sqs(), events)
    expected = [Rejected if number in (4, 17) else Delivered for number in range(25)]
    assert [type(result) for result in results] == expected
    assert "shorter than 2000 bytes" in results[4].error
    assert len(taken(queue)) == 23


def test_words_of_the_server_are_cleaned(front, new_sqs_queue, open_sqs, new_event, publish):
    """What SQS repeats of a payload does not reach the error."""
    payload = "the secret life of payloads"
    body = {"__type": "InvalidParameterValue", "message": f"Value {payload} is bad"}
    front.answer = lambda _: (400, {}, json.dumps(body).encode())
    event = new_event(new_sqs_queue(), payload=payload.encode())
    [result] = publish(open_sqs(endpoint_url=front.url), [event])
    assert type(result) is Rejected
    assert "secret life" not in result.error


def test_a_missing_queue(sqs_client, new_sqs_queue, open_sqs, new_event, publish):
    """Events of a queue that is not there fail, those of others are delivered; once it is there
    they are, too.
    """
    queue, one = new_sqs_queue(), open_sqs()
    events = [new_event(queue), new_event("later"), new_event("no queue!"), new_event(queue)]
    results = publish(one, events)
    assert [type(result) for result in results] == [Delivered, Failed, Rejected, Delivered]
    assert "the queue 'later'" in results[1].error
    sqs_client.create_queue(QueueName="later")
    assert kinds_of(publish(one, [new_event("later")])) == {Delivered}
    sqs_client.delete_queue(QueueUrl=sqs_client.get_queue_url(QueueName="later")["QueueUrl"])
    for _ in range(2):
        assert kinds_of(publish(one, [new_event("later")])) == {Failed}


def test_an_answer_too_late(front, new_sqs_queue, open_sqs, new_event, publish, taken):
    """What was sent and is not answered before the deadline is unknown; what found no place among
    the requests under way was not sent, and never is.
    """
    queue = new_sqs_queue()
    one = open_sqs(endpoint_url=front.url, concurrency=2)
    publish(one, [new_event(queue)])
    taken(queue)
    go_on = threading.Event()
    front.before_answer = lambda: go_on.wait(60)
    start = time.monotonic()
    results = publish(one, [new_event(queue) for _ in range(300)], seconds=MIDDLE)
    assert time.monotonic() - start < MIDDLE + GRACE
    kinds = [type(result) for result in results]
    assert kinds_of(results) == {Unknown, NotSent}
    assert kinds.count(Unknown) >= 20
    go_on.set()
    time.sleep(0.5)
    assert len(taken(queue)) <= kinds.count(Unknown)
    front.before_answer = lambda: None
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


def test_an_answer_that_trickles(front, new_sqs_queue, open_sqs, new_event, publish):
    """An answer that comes byte by byte, so that no time-out of the SDK ends it, is unknown at the
    deadline all the same; what was not begun was not sent.
    """
    queue = new_sqs_queue()
    one = open_sqs(endpoint_url=front.url, concurrency=2)
    publish(one, [new_event(queue)])
    front.trickle_seconds = 2 * MIDDLE
    start = time.monotonic()
    results = publish(one, [new_event(queue) for _ in range(50)], seconds=MIDDLE)
    assert time.monotonic() - start < MIDDLE + GRACE
    kinds = [type(result) for result in results]
    assert kinds == [Unknown] * 20 + [NotSent] * 30
    assert len(front.requests) == 1 + 2


def test_frozen(running_moto, new_sqs_queue, open_sqs, new_event, publish):
    """With a server that freezes the call ends at the deadline, and later calls are well."""
    queue, one = new_sqs_queue(), open_sqs()
    publish(one, [new_event(queue)])
    running_moto.pause()
    start = time.monotonic()
    results = publish(one, [new_event(queue) for _ in range(200)], seconds=MIDDLE)
    assert time.monotonic() - start < MIDDLE + GRACE
    assert Unknown in kinds_of(results) <= {Unknown, NotSent}
    results = publish(open_sqs(), [new_event(queue)], seconds=1)
    assert kinds_of(results) <= {Failed, NotSent}
    running_moto.resume()
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


def test_stopped_and_started(running_moto, sqs_client, new_sqs_queue, open_sqs, new_event, publish):
    """When the server ends in the middle, events are delivered, unknown or failed; while it is
    away they fail, and the same publisher goes on once it is back.
    """
    queue, one = new_sqs_queue(), open_sqs()
    publish(one, [new_event(queue)])
    timer = threading.Timer(0.2, running_moto.stop)
    timer.start()
    results = publish(one, [new_event(queue) for _ in range(2000)], seconds=20)
    timer.join()
    assert Failed in kinds_of(results) <= {Delivered, Unknown, Failed}
    [result] = publish(one, [new_event(queue)], seconds=5)
    assert type(result) is Failed
    assert "cannot be reached" in result.error
    running_moto.start()
    sqs_client.create_queue(QueueName=queue)
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


@pytest.fixture
def kept(front):
    """Return a proxy before a server that keeps its connections, as Amazon's does."""
    with Proxy() as proxy:
        proxy.target = urlparse(front.url).port
        yield proxy


def test_an_idle_connection(kept, new_sqs_queue, open_sqs, new_event, publish, taken):
    """A connection that the server has closed between two calls is replaced before anything is
    sent: nothing is lost, nothing unknown.
    """
    queue, one = new_sqs_queue(), open_sqs(endpoint_url=f"http://{kept.address}", concurrency=2)
    for times in range(1, 4):
        events = [new_event(queue) for _ in range(20)]
        assert kinds_of(publish(one, events, seconds=5)) == {Delivered}
        assert len(taken(queue)) == 20
        assert kept.accepted >= times
        kept.close()
        time.sleep(0.2)  # until both ends know


def test_a_connection_that_was_dropped_without_a_word(
    kept, new_sqs_queue, open_sqs, new_event, publish
):
    """Where something between has forgotten an idle connection and says so to nobody, the call ends
    with its deadline, and the next one is well.
    """
    queue, one = new_sqs_queue(), open_sqs(endpoint_url=f"http://{kept.address}")
    # As long as the next one, for which the SDK has the same connections.
    assert kinds_of(publish(one, [new_event(queue)], seconds=5)) == {Delivered}
    before = kept.accepted
    kept.forget()
    start = time.monotonic()
    assert kinds_of(publish(one, [new_event(queue)], seconds=5)) == {Unknown}
    assert time.monotonic() - start < 5 + GRACE
    assert kinds_of(publish(one, [new_event(queue)], seconds=5)) == {Delivered}
    assert kept.accepted > before


def test_nothing_is_sent_after_the_deadline(front, new_sqs_queue, open_sqs, new_event, publish):
    """With a deadline that has passed nothing is sent, and no events are no work."""
    queue, one = new_sqs_queue(), open_sqs(endpoint_url=front.url)
    publish(one, [new_event(queue)])
    assert publish(one, [new_event(queue)], seconds=0) == [NotSent()]
    assert publish(one, [new_event(queue)], seconds=0.05) == [NotSent()]
    assert publish(one, []) == []
    assert len(front.requests) == 1
