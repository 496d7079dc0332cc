"""A server that speaks SQS for the whole run, and what its tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
import pytest
from mypy_boto3_sqs import SQSClient
from mypy_boto3_sqs.type_defs import MessageTypeDef
from tests.publishers.sqs_server import Front, MotoServer

from delta_outbox.publishers.sqs.publisher import SqsPublisher

ACCESS: dict[str, Any] = {
    "region": "eu-west-1",
    "access_key_id": "AKIDEXAMPLE",
    "secret_access_key": "a secret of tests",
}


def connect(server: MotoServer) -> SQSClient:
    """Return a client of the tests' own."""
    return boto3.client(
        "sqs",
        endpoint_url=server.url,
        region_name=ACCESS["region"],
        aws_access_key_id=ACCESS["access_key_id"],
        aws_secret_access_key=ACCESS["secret_access_key"],
    )


def take(client: SQSClient, queue: str) -> list[MessageTypeDef]:
    """Take everything out of a queue."""
    url = client.get_queue_url(QueueName=queue)["QueueUrl"]
    found: list[MessageTypeDef] = []
    while True:
        got = client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages", [])
        if not got:
            return found
        found += got
        client.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(got)
            ],
        )


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoServer]:
    """Start one server for all tests."""
    with MotoServer() as server:
        yield server


@pytest.fixture
def running_moto(moto: MotoServer) -> Iterator[MotoServer]:
    """Give a test the server to stop or freeze, and start it again afterwards."""
    yield moto
    moto.resume()
    moto.start()


@pytest.fixture
def front(moto: MotoServer) -> Iterator[Front]:
    """Give a test answers to choose."""
    with Front(moto.url) as one:
        yield one


@pytest.fixture(scope="session")
def sqs_client(moto: MotoServer) -> Iterator[SQSClient]:
    """Open a client of the tests' own."""
    client = connect(moto)
    yield client
    client.close()


@pytest.fixture(scope="session")
def new_sqs_queue(sqs_client: SQSClient) -> Callable[..., str]:
    """Create a queue with a name of its own."""
    numbers = itertools.count()

    def create(*, fifo: bool = False, **attributes: str) -> str:
        name = f"test-{next(numbers)}" + (".fifo" if fifo else "")
        given: Any = {**attributes, **({"FifoQueue": "true"} if fifo else {})}
        sqs_client.create_queue(QueueName=name, Attributes=given)
        return name

    return create


@pytest.fixture
def open_sqs(moto: MotoServer) -> Iterator[Callable[..., SqsPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[SqsPublisher] = []

    def open_one(**settings: Any) -> SqsPublisher:
        one = SqsPublisher()
        one.open({"endpoint_url": moto.url, **ACCESS, **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def taken(sqs_client: SQSClient) -> Callable[[str], list[MessageTypeDef]]:
    """Take everything out of a queue."""
    return partial(take, sqs_client)
