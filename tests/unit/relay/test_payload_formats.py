"""What policies want as CloudEvents is checked against the settings before anything is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from delta_outbox.core.errors import BadPolicy, BadSettings, UnknownDestination
from delta_outbox.core.settings import FromEnvironment, PublisherSettings, SecretMapping, Settings
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.publishers import Transport
from delta_outbox.publishers.cloudevents.conversion import CloudEventFormat
from delta_outbox.publishers.cloudevents.settings import CloudEventSettings
from delta_outbox.relay.destinations.destinations import prepare_destinations
from delta_outbox.relay.destinations.payload_formats import prepare_payload_formats

SHOP = {"source": "/shop"}


def policies(**formats: str) -> PolicySet:
    """Return a policy per destination, and a last one that sends to `default` as it is."""
    rows = [
        {"event_type": f"{name}.*", "destination": name, "format": format_}
        for name, format_ in formats.items()
    ]
    return PolicySet.parse([*rows, {"event_type": "*", "destination": "default"}])


def settings(**tables: Mapping[str, object]) -> Settings:
    """Return settings of destinations, each a table with its `type`; `default` writes files."""
    given = {"default": {"type": "jsonl"}, **tables}
    return Settings(
        publishers={
            name: PublisherSettings(
                type=str(table["type"]),
                settings=SecretMapping({k: v for k, v in table.items() if k != "type"}),
            )
            for name, table in given.items()
        }
    )


def test_a_destination_has_the_form_of_its_settings():
    """The table says what events do not know, and the publisher how attributes are written; who
    has no table has no payload format and needs none.
    """
    table = {"source": "/shop", "content_type": "text/csv", "extensions": {"tenant": "x"}}
    given = settings(bus={"type": "kafka", "topics": "*", "cloudevents": table})
    payload_formats = prepare_payload_formats(policies(bus="cloudevents-binary"), given)
    expected = CloudEventFormat(
        settings=CloudEventSettings(
            source="/shop", content_type="text/csv", extensions={"tenant": "x"}
        ),
        transport=Transport.KAFKA,
    )
    assert {"bus": expected} == payload_formats


@pytest.mark.parametrize("type_", ["kafka", "http", "nats", "rabbitmq"])
@pytest.mark.parametrize("format_", ["raw", "cloudevents-structured", "cloudevents-binary"])
def test_bound_transports_write_both_modes(type_: str, format_: str):
    """Where CloudEvents has a binding, both modes are accepted."""
    given = settings(bus={"type": type_, "cloudevents": SHOP})
    assert ["bus"] == list(prepare_payload_formats(policies(bus=format_), given))


@pytest.mark.parametrize(
    ("type_", "format_", "allowed"),
    [
        ("null", "cloudevents-structured", "raw"),
        ("memory", "cloudevents-binary", "raw"),
        ("redis", "cloudevents-binary", "raw or cloudevents-structured"),
        ("sqs", "cloudevents-binary", "raw or cloudevents-structured"),
        ("jsonl", "cloudevents-binary", "raw or cloudevents-structured"),
    ],
)
def test_a_mode_that_a_publisher_lacks_is_refused(type_: str, format_: str, allowed: str):
    """A policy that asks for what the publisher does not carry is refused in one sentence."""
    with pytest.raises(BadPolicy) as caught:
        prepare_payload_formats(policies(bus=format_), settings(bus={"type": type_}))
    rule = f"must be {allowed} at the destination 'bus'. Got: {format_}"
    assert (f"row 1 ('bus.*'), column `format`: {rule}",) == caught.value.problems


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"type": "kafka"}, "a table `cloudevents` with `source` must be given"),
        ({"type": "kafka", "cloudevents": {}}, "`source` must be given"),
        ({"type": "kafka", "cloudevents": {"source": "a b"}}, "must be a URI-reference"),
        ({"type": "kafka", "cloudevents": {"sauce": "/a"}}, "Did you mean `source`?"),
        ({"type": "null", "cloudevents": SHOP}, "does not carry CloudEvents"),
    ],
)
def test_a_table_that_does_not_do_is_refused(table: Mapping[str, object], said: str):
    """A table that is missing, wrong or without use is refused with the destination's name."""
    with pytest.raises(BadSettings, match=r"^publishers\.bus: ") as caught:
        prepare_payload_formats(policies(bus="cloudevents-structured"), settings(bus=table))
    assert said in str(caught.value)


def test_no_secret_of_a_table_is_shown():
    """What comes from the environment is hidden where the sentence would repeat it."""
    table = {"source": FromEnvironment("hunter2 is secret")}
    with pytest.raises(BadSettings) as caught:
        prepare_payload_formats(
            policies(bus="raw"), settings(bus={"type": "kafka", "cloudevents": table})
        )
    assert "***" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_unknown_destination_is_named():
    """A destination that the settings do not have is said to be missing."""
    with pytest.raises(UnknownDestination, match="'bus'"):
        prepare_payload_formats(policies(bus="cloudevents-binary"), settings())


def test_the_publisher_does_not_see_the_table(tmp_path: Path):
    """The table is the relay's: settings of the publisher are prepared and checked without it."""
    given = settings(default={"type": "jsonl", "cloudevents": SHOP})
    prepared = prepare_destinations(["default"], given, home=tmp_path)
    assert {"default": ("jsonl", {"path": str(tmp_path / "delivered")})} == prepared
