"""What RabbitMQ refuses, and what becomes of its neighbours."""

from __future__ import annotations

import threading
import time

import pytest
from tests.publishers.rabbitmq_fixtures import connect
from tests.publishers.rabbitmq_server import MAX_MESSAGE_SIZE, PASSWORD, READER, USER
from tests.publishers.timing import GRACE

from delta_outbox.core.errors import BadSettings
from delta_outbox.publishers import Delivered, Failed, NotSent, Rejected, Unknown
from delta_outbox.publishers.rabbitmq.publisher import RabbitPublisher
from delta_outbox.publishers.registry import find_publisher, prepare_settings


def kinds_of(results):
    """Return the classes of results."""
    return {type(result) for result in results}


def test_no_queue_is_a_failure(new_queue, open_rabbit, new_event, publish, received):
    """What no queue takes has failed, since a queue can be bound; then it is delivered."""
    queue, one = new_queue(), open_rabbit()
    events = [new_event(queue if number % 3 else "nowhere") for number in range(300)]
    results = publish(one, events)
    expected = [Delivered if number % 3 else Failed for number in range(300)]
    assert [type(result) for result in results] == expected
    assert "no queue is bound for the route 'nowhere'" in results[0].error
    assert len(received(queue)) == 200


def test_a_full_queue_is_a_failure(new_queue, open_rabbit, new_event, publish, received):
    """What a full queue refuses (basic.nack) has failed, and its neighbours are delivered."""
    full = new_queue(x_max_length=1, x_overflow="reject-publish")
    queue, one = new_queue(), open_rabbit()
    publish(one, [new_event(full)])
    results = publish(one, [new_event(queue), new_event(full), new_event(queue)])
    assert [type(result) for result in results] == [Delivered, Failed, Delivered]
    assert "nack" in results[1].error
    assert len(received(queue)) == 2


def test_exchange_and_routing_key(rabbit, new_queue, open_rabbit, new_event, publish, received):
    """An event goes to the exchange of the settings with its route as routing key."""
    queue = new_queue()
    with connect(rabbit) as connection:
        channel = connection.channel()
        channel.exchange_declare("flights", exchange_type="topic", durable=True)
        channel.queue_bind(queue, "flights", routing_key="flight.*.landed")
    one = open_rabbit(exchange="flights")
    results = publish(one, [new_event("flight.17.landed"), new_event("flight.17.departed")])
    assert [type(result) for result in results] == [Delivered, Failed]
    assert len(received(queue)) == 1


def test_a_missing_exchange(rabbit, new_queue, open_rabbit, new_event, publish):
    """Without the exchange everything fails with its name; once it is there, all is well."""
    queue = new_queue()
    one = open_rabbit(exchange="later")
    results = publish(one, [new_event(queue) for _ in range(10)])
    assert kinds_of(results) == {Failed}
    assert "no exchange 'later'" in results[0].error
    with connect(rabbit) as connection:
        channel = connection.channel()
        channel.exchange_declare("later", exchange_type="direct")
        channel.queue_bind(queue, "later", routing_key=queue)
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}
    with connect(rabbit) as connection:
        connection.channel().exchange_delete("later")
    assert Delivered not in kinds_of(publish(one, [new_event(queue) for _ in range(10)]))
    assert kinds_of(publish(one, [new_event(queue) for _ in range(10)])) == {Failed}


def test_access_refused(new_queue, open_rabbit, new_event, publish, received):
    """Where writing is not permitted every event fails with the broker's reason."""
    queue = new_queue()
    one = open_rabbit(username=READER)
    results = publish(one, [new_event(queue), new_event(queue, "k"), new_event(queue, "k")])
    assert [type(result) for result in results] == [Failed, Failed, NotSent]
    assert "ACCESS_REFUSED" in results[0].error
    assert received(queue) == []


def test_a_topic_that_may_not_be_written(
    rabbit, new_queue, open_rabbit, new_event, publish, received
):
    """Where one routing key is forbidden only its events fail; what was under way before the first
    refusal is unknown at worst, and from then on neighbours are safe.
    """
    queue = new_queue()
    with connect(rabbit) as connection:
        connection.channel().queue_bind(queue, "amq.topic", routing_key="#")
    rabbit.control("set_topic_permissions", USER, "amq.topic", "^allowed", ".*")
    try:
        one = open_rabbit(exchange="amq.topic")
        routes = ["forbidden" if number in (70, 140) else "allowed" for number in range(200)]
        results = publish(one, [new_event(route) for route in routes])
        for number, result in enumerate(results):
            expected: set[type] = {Failed} if number in (70, 140) else {Delivered}
            assert type(result) in expected | ({Unknown} if number < 70 else set())
        assert "access to topic 'forbidden'" in results[70].error
        again = publish(one, [new_event(route) for route in routes])
        assert [Failed if r == "forbidden" else Delivered for r in routes] == list(map(type, again))
    finally:
        rabbit.control("clear_topic_permissions", USER)
    arrived = len(received(queue))
    unknown = sum(type(result) is Unknown for result in results)
    assert 198 * 2 - unknown <= arrived <= 198 * 2


def test_a_message_too_large(new_queue, open_rabbit, new_event, publish, received):
    """A message above the broker's limit is rejected with both sizes; what came before it is
    unknown at worst, what comes after it is delivered once, and further ones harm nobody.
    """
    queue, one = new_queue(), open_rabbit()
    large = b"x" * (MAX_MESSAGE_SIZE + 1)
    events = [new_event(queue, payload=large if n in (40, 80) else b"x") for n in range(120)]
    results = publish(one, events)
    for number, result in enumerate(results):
        expected: set[type] = {Rejected} if number in (40, 80) else {Delivered}
        assert type(result) in expected | ({Unknown} if number < 40 else set())
    assert f"{MAX_MESSAGE_SIZE + 1} bytes" in results[40].error
    assert f"max_message_size is {MAX_MESSAGE_SIZE}" in results[80].error
    bodies = [properties.message_id for properties, _ in received(queue)]
    certain = [e.event_id for e, r in zip(events, results, strict=True) if type(r) is Delivered]
    assert len(bodies) == len(set(bodies))
    assert set(certain) <= set(bodies)
    again = publish(one, [new_event(queue), new_event(queue, payload=large), new_event(queue)])
    assert [type(result) for result in again] == [Delivered, Rejected, Delivered]


def test_a_message_larger_than_the_window(new_queue, open_rabbit, new_event, publish, received):
    """A message of more than 1 MiB travels alone, so its refusal touches no neighbour at all."""
    queue, one = new_queue(), open_rabbit()
    events = [new_event(queue) for _ in range(50)]
    events[25:25] = [new_event(queue, payload=b"x" * 1_200_000)]
    results = publish(one, events)
    expected = [Rejected if number == 25 else Delivered for number in range(51)]
    assert [type(result) for result in results] == expected
    assert len(received(queue)) == 50


def test_an_alarm_ends_at_the_deadline(
    rabbit, new_queue, open_rabbit, new_event, publish, received
):
    """While memory is short nothing hangs: one event is unknown, all others fail with the reason,
    and after the alarm everything is delivered.
    """
    queue, fresh, used = new_queue(), open_rabbit(), open_rabbit()
    publish(used, [new_event(queue)])
    rabbit.control("set_vm_memory_high_watermark", "absolute", "1")
    try:
        for one in (fresh, used):
            start = time.monotonic()
            results = publish(one, [new_event(queue) for _ in range(50)], seconds=2)
            assert time.monotonic() - start < 2 + GRACE
            kinds = [type(result) for result in results]
            assert kinds.count(Unknown) + kinds.count(Failed) == 50
            assert "low on memory" in results[-1].error or kinds[-1] is Unknown
        results = publish(open_rabbit(), [new_event(queue)] * 5, seconds=1)
        assert kinds_of(results) <= {Unknown, Failed}
    finally:
        rabbit.control("set_vm_memory_high_watermark", "0.4")
    assert kinds_of(publish(fresh, [new_event(queue) for _ in range(50)])) == {Delivered}
    assert len(received(queue)) >= 51


def test_an_alarm_that_passes(rabbit, new_queue, open_rabbit, new_event, publish, received):
    """An alarm that ends before the deadline costs nothing but time."""
    queue, one = new_queue(), open_rabbit()
    rabbit.control("set_vm_memory_high_watermark", "absolute", "1")
    try:
        first = publish(one, [new_event(queue), new_event(queue)], seconds=1)
    finally:
        mended = threading.Timer(0.2, rabbit.control, ["set_vm_memory_high_watermark", "0.4"])
        mended.start()
    results = publish(
        one, [new_event(queue) for _ in range(100)], seconds=300
    )  # on a busy machine its control takes a minute
    mended.join()
    assert [type(result) for result in first] == [Unknown, Failed]
    assert kinds_of(results) == {Delivered}
    assert len(received(queue)) >= 100


def test_wrong_password_and_virtual_host(rabbit, open_rabbit, new_event, publish):
    """A login that is refused is a failure of every event, and the password is in no sentence."""
    results = publish(open_rabbit(password="wrong horse"), [new_event("q")] * 3)
    assert kinds_of(results) == {Failed}
    assert "ACCESS_REFUSED" in results[0].error
    assert "wrong horse" not in results[0].error
    for host in ("other", "missing"):
        results = publish(open_rabbit(virtual_host=host), [new_event("q")])
        assert kinds_of(results) == {Failed}
        assert host in results[0].error


def test_probe(rabbit, rabbit_proxy):
    """A probe says nothing where all is well, else one sentence with the address, in time."""
    good = {"host": "127.0.0.1", "port": rabbit.port, "username": USER, "password": PASSWORD}
    RabbitPublisher.probe(good, 10)
    for wrong, reason in (
        ({"password": "no"}, "ACCESS_REFUSED"),
        ({"exchange": "missing"}, "no exchange 'missing'"),
        ({"port": 1}, "127.0.0.1:1"),
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
        ({"tls": True}, "SSL"),
    ):
        with pytest.raises(ConnectionError, match=reason):
            RabbitPublisher.probe({**good, **wrong}, 10)
    rabbit_proxy.holds_replies = True
    start = time.monotonic()
    with pytest.raises(ConnectionError, match="does not answer"):
        RabbitPublisher.probe({**good, "port": rabbit_proxy.port}, 0.5)
    assert time.monotonic() - start < 0.5 + GRACE


def test_tls(rabbit, new_queue, open_rabbit, new_event, publish, received):
    """Over TLS events arrive if the broker's certificate is trusted and names the host; else
    nothing is sent.
    """
    queue = new_queue()
    tls = {"tls": True, "host": "localhost", "port": rabbit.tls_port}
    trusting = open_rabbit(**tls, ca_file=str(rabbit.authority))
    assert kinds_of(publish(trusting, [new_event(queue) for _ in range(100)])) == {Delivered}
    assert len(received(queue)) == 100
    misnamed = {**tls, "host": "127.0.0.1", "ca_file": str(rabbit.authority)}
    for one in (open_rabbit(**tls), open_rabbit(**misnamed)):
        results = publish(one, [new_event(queue)])
        assert kinds_of(results) == {Failed}
        assert "certificate" in results[0].error.lower()
    assert received(queue) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"host": None}, "`host` must be a text"),
        ({"username": ""}, "`username` must be a text"),
        ({"password": 12345678}, "`password` must be a text"),
        ({"port": 0}, "`port` must be a whole number from 1 to 65535"),
        ({"port": True}, "`port` must be a whole number"),
        ({"heartbeat": -1}, "`heartbeat` must be a whole number"),
        ({"tls": "yes"}, "`tls` must be true or false"),
        ({"ca_file": "/x"}, "`ca_file` needs TLS"),
        ({"tls": True, "ca_file": "/no/such/file"}, "`ca_file` cannot be read"),
        ({"tls": True, "ca_file": __file__}, "is no PEM of its kind"),
        ({"exchange": "x" * 256}, "`exchange` must have at most 255 bytes"),
        ({"exchnage": "x"}, "Did you mean `exchange`?"),
        ({"retries": 3}, "`retries` is not among the settings"),
    ],
)
def test_wrong_settings(settings, sentence, tmp_path):
    """A wrong setting is one sentence with the rule, found without a connection."""
    good = {"host": "rabbit.example", "username": "u", "password": "p"}
    publisher = find_publisher("rabbitmq", destination="d")
    prepare_settings(publisher, good, destination="d", home=tmp_path)
    with pytest.raises(BadSettings) as raised:
        prepare_settings(publisher, {**good, **settings}, destination="d", home=tmp_path)
    assert sentence in str(raised.value)
    assert "12345678" not in str(raised.value)
