"""Publishers: how events leave the outbox.

- cloudevents: an event as a CloudEvent
- echo: takes an event's own content out of what a destination answers
- http: webhooks
- http_headers: what headers of HTTP may be called, and hold
- jsonl: files in a folder
- kafka: a topic, with or without transactions
- key_chains: the order of a key, where each answer is waited for
- key_rounds: the order of a key, where events go in a pipeline
- memory: a destination inside this process
- nats: JetStream or core
- null: takes everything and keeps nothing
- protocol: what a publisher is given and must answer; what it may offer besides
- rabbitmq: exchanges and queues, with confirms
- redis: streams or channels
- registry: which class a `type` is, which extra it needs, and the check of its settings
- setting_reader: the settings of a destination, from an allow-list
- sqs: queues of Amazon SQS
"""

from __future__ import annotations

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
from delta_outbox.publishers.protocol import (
    Event,
    EventBatch,
    Publisher,
    Recover,
    Recovered,
    UnresolvedClaim,
)

__all__ = [
    "Delivered",
    "Event",
    "EventBatch",
    "Failed",
    "JsonText",
    "NotSent",
    "Publisher",
    "Recover",
    "Recovered",
    "Rejected",
    "Result",
    "Transport",
    "Unknown",
    "UnresolvedClaim",
]
