"""The publisher kit on SQS."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mypy_boto3_sqs.type_defs import MessageTypeDef
from tests.publishers.sqs_adapter import SqsAdapter
from tests.publishers.sqs_server import MotoServer

from delta_outbox.testing.publishers import NAMES, Capability, Finding, check
from delta_outbox.testing.publishers.adapter import capabilities


@pytest.fixture(scope="module", params=["standard", "FIFO"])
def adapter(
    request: pytest.FixtureRequest,
    moto: MotoServer,
    new_sqs_queue: Callable[..., str],
    taken: Callable[[str], list[MessageTypeDef]],
) -> Iterator[SqsAdapter]:
    """Let the kit write to a queue of either kind."""
    one = SqsAdapter(moto, queue=new_sqs_queue(fifo=request.param == "FIFO"), take=taken)
    yield one
    one.close()


@pytest.fixture(scope="module")
def findings(adapter: SqsAdapter) -> dict[str, Finding]:
    """Run the kit once."""
    return {finding.name: finding for finding in check(adapter)}


@pytest.mark.parametrize("name", NAMES)
def test_sqs_keeps_the_rules(findings: dict[str, Finding], name: str):
    """What every publisher must keep, SQS keeps."""
    findings[name].demand()


def test_only_order_within_a_call_and_keys_are_not_asked_for(adapter: SqsAdapter):
    """A call holds no two events of a key, and a standard queue shows none."""
    keys = set() if adapter.carries_keys else {Capability.KEYS}
    assert {Capability.ORDERED} | keys == set(Capability) - capabilities(adapter)
