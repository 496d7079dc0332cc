"""Redis that refuses: for its state, for rights, for a certificate."""

from __future__ import annotations

import threading

import pytest
from tests.publishers.redis_server import RedisServer, check_answers, make_certificates

from delta_outbox.core.errors import PublisherUnavailable
from delta_outbox.demo.ports import free_ports
from delta_outbox.publishers import Delivered, Failed, NotSent
from delta_outbox.publishers.redis.publisher import RedisPublisher
from delta_outbox.publishers.registry import probe


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (lambda c: c.config_set("maxmemory", 1), "Redis: OOM command not allowed"),
        (lambda c: c.config_set("min-replicas-to-write", 1), "Redis: NOREPLICAS"),
        (lambda c: c.replicaof("127.0.0.1", "1"), "Redis: READONLY"),
        (lambda c: c.set("s", "text"), "Redis: WRONGTYPE"),
        (lambda c: c.xadd("s", {"a": "b"}, id=f"{2**64 - 1}-{2**64 - 1}"), "exhausted"),
    ],
    ids=["memory", "replicas", "read-only", "type", "ids"],
)
def test_a_refusal_fails_events(running_redis, open_redis, new_event, publish, trouble, said):
    """What the server refuses for its state or its data has failed, alone or in a transaction."""
    with running_redis.client() as client:
        trouble(client)
        before = client.xlen("s") if client.type("s") == b"stream" else 0
        results = publish(open_redis(), [new_event("s"), new_event("s", "k"), new_event("s", "k")])
        assert [Failed] * 3 == [type(result) for result in results]
        assert all(said in result.error for result in results)
        assert before == (client.xlen("s") if client.type("s") == b"stream" else 0)


def test_a_server_that_refuses_for_moments_keeps_the_order(
    running_redis, open_redis, new_event, publish
):
    """While a server changes its mind again and again, no event overtakes one of its key."""
    ended = threading.Event()

    def waver():
        with running_redis.client() as client:
            while not ended.is_set():
                client.config_set("min-replicas-to-write", 1)
                client.config_set("min-replicas-to-write", 0)

    wavering = threading.Thread(target=waver)
    wavering.start()
    try:
        one, kinds = open_redis(), set()
        for number in range(8):
            events = [new_event(f"s{number}", f"k{n % 40}") for n in range(5000)]
            results = publish(one, events)
            check_answers(running_redis, events, results, f"s{number}")
            kinds |= {type(result) for result in results}
    finally:
        ended.set()
        wavering.join()
    assert {Delivered, Failed, NotSent} == kinds


def test_a_server_that_loads_fails_events(running_redis, open_redis, new_event, publish):
    """A server that still reads its data takes nothing, and says so."""
    slowly = ("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
    with RedisServer(*slowly) as slow:
        with slow.client() as client, client.pipeline(transaction=False) as pipeline:
            for number in range(3000):
                pipeline.set(f"key{number}", "x" * 100)
            pipeline.execute()
        slow.stop()
        starting = threading.Thread(target=slow.start)
        starting.start()
        one, said = open_redis(port=slow.port), set()
        while starting.is_alive():
            [result] = publish(one, [new_event("s")])
            if isinstance(result, Failed):
                said.add(result.error)
        starting.join()
        assert any("LOADING Redis is loading the dataset" in error for error in said)
        assert [Delivered] == [type(result) for result in publish(one, [new_event("s")])]


def test_rights_are_needed(running_redis, open_redis, new_event, publish):
    """A wrong password, or a user without the right to write or to make transactions, fails."""
    with running_redis.client() as client:
        for name, key, rights in (("writer", "a*", ["+@all"]), ("loner", "*", ["+xadd", "+ping"])):
            word = ["+right-word"]
            client.acl_setuser(name, enabled=True, passwords=word, keys=[key], commands=rights)
    given = {"username": "writer", "password": "right-word"}
    results = publish(
        open_redis(**given),
        [new_event("a"), new_event("b"), new_event("b", "k"), new_event("b", "k")],
    )
    assert [Delivered, Failed, Failed, Failed] == [type(result) for result in results]
    assert all("NOPERM" in result.error for result in results[1:])
    [result] = publish(open_redis(username="loner", password="right-word"), [new_event("a")])
    assert isinstance(result, Failed)
    assert "multi" in result.error
    wrong = {"username": "writer", "password": "wrong-word"}
    [result] = publish(open_redis(**wrong), [new_event("a")])
    assert isinstance(result, Failed)
    assert "WRONGPASS" in result.error
    assert "wrong-word" not in result.error


def test_a_password_is_asked_for(new_event, publish, open_redis):
    """A server with a password takes nobody without it; `probe` says the same."""
    with RedisServer(password="the-word") as guarded:
        [result] = publish(open_redis(port=guarded.port), [new_event("s")])
        assert isinstance(result, Failed)
        assert "NOAUTH" in result.error
        settings = {"url": f"redis://127.0.0.1:{guarded.port}/3", "streams": "*"}
        with pytest.raises(PublisherUnavailable, match="NOAUTH"):
            probe(RedisPublisher, settings, destination="default")
        settings["password"] = "the-word"
        probe(RedisPublisher, settings, destination="default")
        one = RedisPublisher()
        one.open(settings)
        publish(one, [new_event("s")])
        one.close()
        with guarded.client(db=3) as client:
            assert client.xlen("s") == 1


def test_a_cluster_is_not_followed(open_redis, new_event, publish):
    """A node that does not serve the stream's slot fails the event and is not asked elsewhere."""
    with RedisServer("--cluster-enabled", "yes") as node:
        [result] = publish(open_redis(port=node.port), [new_event("s")])
        assert isinstance(result, Failed)
        assert "CLUSTERDOWN" in result.error


def test_a_probe_of_nobody_says_the_address():
    """Without a server `probe` fails at once and names the address."""
    settings = {"host": "127.0.0.1", "port": 1, "streams": "*"}
    with pytest.raises(
        PublisherUnavailable, match=r"127\.0\.0\.1:1 is not usable: Connection refused"
    ):
        probe(RedisPublisher, settings, destination="default")


def test_a_certificate_is_always_verified(tmp_path, new_event, publish):
    """With TLS a server is taken only with the certificate of the authority that was named."""
    authority, certificate, key = make_certificates(tmp_path)
    with RedisServer() as plain:
        with plain.client() as client:
            [port] = free_ports(1)
            client.config_set("tls-auth-clients", "no")
            files = ("tls-cert-file", str(certificate), "tls-key-file", str(key))
            client.config_set(*files, "tls-ca-cert-file", str(authority))
            client.config_set("tls-port", port)
        url = {"url": f"rediss://127.0.0.1:{port}", "streams": "*"}
        with pytest.raises(PublisherUnavailable, match=r"(?i)certificate verify failed"):
            probe(RedisPublisher, url, destination="default")
        one = RedisPublisher()
        one.open({**url, "ca_file": str(authority)})
        events = [new_event("s", "k", payload=b"x" * 2000) for _ in range(2000)]
        results = publish(one, events)
        one.close()
        assert {Delivered} == {type(result) for result in results}
        check_answers(plain, events, results)
        with pytest.raises(PublisherUnavailable, match="is not usable"):
            probe(
                RedisPublisher, {**url, "url": f"rediss://127.0.0.1:{plain.port}"}, destination="d"
            )
