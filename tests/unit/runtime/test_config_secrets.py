"""References to the environment, and values that are never shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtime.settings_files import load, refusal

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import DestinationLimits
from delta_outbox.relay.destinations.destinations import prepare_destinations
from delta_outbox.runtime.settings_file import SecretMapping


def test_references_are_filled_in_everywhere(tmp_path: Path) -> None:
    """${NAME} stands for a variable in any text, also in lists and tables; $$ for a dollar."""
    found = load(
        tmp_path,
        """
        [append]
        event_type_pattern = "${PATTERN}$"
        [publishers.orders]
        type = "${TYPE}"
        "bootstrap.servers" = "${HOST}:${PORT}"
        topics = ["${HOST}", 1]
        tls.password = "$${HOST} a$b $$$$ ${EMPTY}"
        retries = 3
        """,
        TYPE="kafka",
        HOST="${PORT}",
        PORT="9092",
        EMPTY="",
        PATTERN="a+",
    )
    assert "a+$" == found.append.event_type_pattern
    orders = found.publishers["orders"]
    assert "kafka" == orders.type
    # What a variable holds is not looked at again.
    assert {
        "bootstrap.servers": "${PORT}:9092",
        "topics": ["${PORT}", 1],
        "tls": {"password": "${HOST} a$b $$ "},
        "retries": 3,
    } == dict(orders.settings)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("relay.batch_size = '${SECRET_KEY}'", "relay.batch_size"),
        ("publishers.a.type = '${SECRET_KEY}'", "publishers.a.type"),
        ("publishers.a = {type = 'null', workers = '${SECRET_KEY}'}", "publishers.a.workers"),
    ],
)
def test_missing_variable_is_named(tmp_path: Path, text: str, where: str) -> None:
    """A reference to a variable that is not set names file, key and variable."""
    said = f"`{where}` refers to the environment variable SECRET_KEY, which is not set."
    assert said == refusal(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "publishers.a = {type = 'kafka', host = 'h', tls = {keys = ['x', '${A}-${SECRET_KEY}']}}",
        "third_parties.a = {host = 'h', tls = {keys = ['x', '${A}-${SECRET_KEY}']}}",
    ],
)
def test_a_variable_is_missed_by_whoever_uses_it(tmp_path: Path, text: str) -> None:
    """Commands that neither publish nor call need no secrets of publishers and third parties."""
    found = load(tmp_path, text, A="a")
    kind = text.partition(".")[0]
    described = found.third_parties["a"] if kind == "third_parties" else found.publishers["a"]
    table = described.settings
    assert ("h", ["host", "tls"], ["SECRET_KEY"]) == (table["host"], list(table), table.unset)
    sent = pickle.loads(pickle.dumps(table))  # to a process of ours
    for use in (lambda: table["tls"], lambda: dict(table), lambda: sent.get("tls")):
        with pytest.raises(BadSettings) as caught:
            use()
        assert str(caught.value) == (
            f"{tmp_path / 'given.toml'}: `{kind}.a.tls.keys[1]` refers to the environment variable "
            "SECRET_KEY, which is not set."
        )
    written = table.as_written()
    assert {"host": "h", "tls": {"keys": ["x", "${A}-${SECRET_KEY}"]}} == written
    assert "${A}" not in repr(found)


def test_a_relay_misses_a_variable_before_it_claims(tmp_path: Path) -> None:
    """A destination whose secret is not set is refused when it is prepared, and no other one."""
    lines = "{type = 'jsonl', path = '${FOLDER}'}"
    found = load(tmp_path, f"publishers = {{a = {lines}, b = {{type = 'null'}}}}")
    assert ["b"] == list(prepare_destinations(["b"], found, home=tmp_path))
    with pytest.raises(BadSettings, match=r"`publishers\.a\.path` refers .* FOLDER, which is not"):
        prepare_destinations(["a"], found, home=tmp_path)


@pytest.mark.parametrize("value", ["${", "${}", "${A", "${A-B}", "${1A}", "${ A }"])
def test_malformed_reference_is_refused(tmp_path: Path, value: str) -> None:
    """What looks like a reference and is none is refused, not passed on."""
    message = refusal(tmp_path, f"publishers.a = {{type = 'null', x = '{value}'}}", A="1")
    assert "`publishers.a.x` holds a reference that is not of the form ${NAME}" in message


def test_values_of_publishers_are_never_shown(tmp_path: Path) -> None:
    """Neither representations nor messages show what a publisher's settings hold."""
    secret = "s3cret"
    text = "publishers.a = {type = 'kafka', password = '${P}', list = ['${P}'], t = {x = '${P}'}}"
    found = load(tmp_path, text, P=secret)
    orders = found.publishers["a"]
    for shown in (found, orders, orders.settings, found.publishers):
        assert secret not in repr(shown)
        assert secret not in str(shown)
    assert "password: ***" in repr(found)
    assert secret == orders.settings["password"]
    for broken in ("type = ['${P}']", "type = 'jsonl', path = ['${P}']", "type = {x = '${P}'}"):
        assert secret not in refusal(tmp_path, f"publishers.a = {{{broken}}}", P=secret)
    assert secret not in refusal(tmp_path, "relay.batch_size = '${P}'", P=secret)


def test_tables_of_third_parties_are_read_as_those_of_publishers(tmp_path: Path) -> None:
    """Their keys are the author's; references are filled in, and values are never shown."""
    text = "third_parties.card_payments = {url = 'https://x', keys = ['${P}'], t = {x = '${P}'}}"
    found = load(tmp_path, text, P="s3cret")
    table = found.of_third_parties["card_payments"]
    assert {"url": "https://x", "keys": ["s3cret"], "t": {"x": "s3cret"}} == table
    assert "s3cret" not in repr(found)
    refused = refusal(tmp_path, "third_parties.card = 'x'")
    assert refused.startswith("`third_parties.card` must be a table. Got: a text.")


def test_a_third_party_has_the_limits_of_a_destination(tmp_path: Path) -> None:
    """Its limits are read and checked as those of a destination, and its tasks never see them."""
    text = "third_parties.card = {url = 'x', rate_per_second = 5, workers = 3}"
    found = load(tmp_path, text)
    assert {"url": "x"} == found.of_third_parties["card"]
    assert DestinationLimits(rate_per_second=5.0, workers=3) == found.limits_of("card")
    assert DestinationLimits() == found.limits_of("nobody")
    refused = refusal(tmp_path, "third_parties.card = {workers = 0}")
    assert refused.startswith("`third_parties.card.workers` must be")


def test_a_third_party_and_a_destination_have_different_names(tmp_path: Path) -> None:
    """A pause names one of them, so they cannot share a name."""
    text = "publishers.card = {type = 'null'}\nthird_parties.card = {}"
    refused = refusal(tmp_path, text)
    assert refused.startswith("`third_parties.card`: must not have the name of a destination")
    for name in ("todo", "workflows"):
        for where in ("third_parties", "publishers"):
            refused = refusal(tmp_path, f"{where}.{name} = {{type = 'null'}}")
            assert refused.startswith(f"`{where}.{name}`: must be another name")
    refused = refusal(tmp_path, "[third_parties.'Card payments']")
    assert refused.startswith("`third_parties`: the name of a third party must be lower-case words")


@given(st.dictionaries(st.text(), st.text(min_size=1).map(lambda value: f"<{value}>")))
def test_secret_mapping_is_a_mapping(values: dict[str, str]) -> None:
    """It equals the mapping it was made from, travels to workers, and does not follow changes."""
    found = SecretMapping(values)
    assert values == found
    assert found == pickle.loads(pickle.dumps(found))
    kept = dict(values)
    values.clear()
    assert kept == found
