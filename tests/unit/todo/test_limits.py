"""Rates, addresses and settings of the server of items."""

from __future__ import annotations

import contextlib
import re
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, Field
from tests.unit.todo.memory_items import office

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import TodoSettings
from delta_outbox.runtime.settings_file import load_settings
from delta_outbox.todo.contracts import check_types
from delta_outbox.todo.rates import MOST_KNOWN, Rates
from delta_outbox.todo.server import NotListening, check_listening, listening
from delta_outbox.workflow_engine.item_decisions import has_slow_patterns
from delta_outbox.workflow_engine.items import ItemType


def test_a_bucket_fills_again() -> None:
    """Somebody may come twice as often as the rate for a moment, then at the rate."""
    now = [0.0]
    rates = Rates(2.0, monotonic=lambda: now[0])
    assert [0, 0, 0, 0, 1] == [rates.wait("ann") for _ in range(5)]
    assert 0 == rates.wait("bob")
    now[0] += 0.5
    assert [0, 1] == [rates.wait("ann"), rates.wait("ann")]
    now[0] += 3600
    assert [0, 0, 0, 0, 1] == [rates.wait("ann") for _ in range(5)]


def test_strangers_do_not_fill_the_memory() -> None:
    """Who was not seen for longest is forgotten."""
    rates = Rates(1.0, monotonic=lambda: 0.0)
    for number in range(MOST_KNOWN + 10):
        rates.wait(str(number))
    assert MOST_KNOWN == len(rates._left)


@pytest.mark.parametrize(
    ("settings", "is_good"),
    [
        ({}, True),
        ({"host": "::1"}, True),
        ({"host": "localhost"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "::"}, False),
        ({"host": "10.0.0.1"}, False),
        ({"host": "todo.example"}, False),
        ({"host": "0.0.0.0", "behind_proxy": True}, True),
        ({"host": "0.0.0.0", "tls_certificate": "c", "tls_key": "k"}, True),
        ({"tls_certificate": "c"}, False),
        ({"tls_key": "k"}, False),
    ],
)
def test_keys_do_not_pass_networks_as_plain_text(
    settings: dict[str, object], is_good: bool
) -> None:
    """Another address than loopback needs TLS, or somebody before the server who speaks it."""
    made = TodoSettings(**settings)  # type: ignore[arg-type]
    if is_good:
        check_listening(made)
    else:
        with pytest.raises(BadSettings, match="todo"):
            check_listening(made)


class Linear(BaseModel):
    text: str = Field(pattern="^(a+)+$")


class Engine(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")

    text: str = Field(pattern="^(a+)+$")


class Compiled(BaseModel):
    text: Annotated[str, Field(pattern=re.compile("^(a+)+$"))]


class Nested(BaseModel):
    engines: list[Engine] = []


@pytest.mark.parametrize(
    ("contract", "is_slow"), [(Linear, False), (Engine, True), (Compiled, True), (Nested, True)]
)
def test_no_answer_stops_the_server(contract: type[BaseModel], is_slow: bool) -> None:
    """A contract whose patterns Python's engine would judge is not served."""
    type_ = ItemType(
        workflow="orders",
        task="review",
        title="Review",
        roles=(),
        outcomes=(),
        contract={},
        has_slow_patterns=has_slow_patterns(contract),
    )
    with pytest.raises(BadSettings, match=r"orders\.review") if is_slow else nullcontext():
        check_types([type_])


def test_a_taken_port_is_said() -> None:
    """Where somebody else listens, or where nobody can, it is said in a sentence."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with (
            pytest.raises(NotListening, match="in use"),
            listening("127.0.0.1", other.getsockname()[1]),
        ):
            pass
    with pytest.raises(NotListening), listening("192.0.2.1", 0):
        pass


def test_headers_are_bounded() -> None:
    """A request whose headers are too large reaches nobody."""
    with office() as desk:
        who = {**desk.key(), "X-Large": "x" * 64 * 1024}
        assert 431 == desk.client.get("/items", headers=who).status_code
        who["X-Large"] = "x" * 4 * 1024**2  # more than is read at once
        with contextlib.suppress(httpx.TransportError):  # closed in the middle of it
            assert 400 == desk.client.get("/items", headers=who).status_code
        assert [] == desk.items.calls


def read(folder: Path, text: str) -> TodoSettings:
    """Return what a settings file says of the server of items."""
    file = folder / "outbox.toml"
    file.write_text(f"[todo]\n{text}\n")
    file.chmod(0o600)
    return load_settings(home=folder, path=file, environ={"LINK": "x" * 40}).todo


def test_settings_are_read(tmp_path: Path) -> None:
    """Each setting is read; files start at the home, and an address stays one."""
    assert TodoSettings() == read(tmp_path, "")
    found = read(
        tmp_path,
        'host = "0.0.0.0"\nport = 80\ntls_certificate = "c.pem"\ntls_key = "/k.pem"\n'
        "behind_proxy = true\nanswer_seconds = 5\nrate_per_second = 1\n"
        'jwks = "https://id.example/jwks"\nissuer = "i"\naudience = "a"\nalgorithms = ["EdDSA"]\n'
        'person_claim = "email"\nroles_claim = "a.b"\nlink_secret = "${LINK}"',
    )
    assert (str(tmp_path / "c.pem"), "/k.pem") == (found.tls_certificate, found.tls_key)
    assert ("https://id.example/jwks", ("EdDSA",)) == (found.jwks, found.algorithms)
    assert "x" * 40 == found.link_secret
    assert "x" * 40 not in repr(found)


@pytest.mark.parametrize(
    "line",
    [
        'algorithms = ["HS256"]',
        'algorithms = ["none"]',
        "algorithms = []",
        'jwks = "http://id.example/jwks"',
        'jwks = "ftp://id.example/jwks"',
        'jwks = "http://localhost.evil.example/jwks"',
        "port = 70000",
        "rate_per_second = 0",
        'behind_proxy = "yes"',
        "unknown = 1",
    ],
)
def test_bad_settings_are_refused(tmp_path: Path, line: str) -> None:
    """What would weaken the server, or means nothing, is refused by name."""
    with pytest.raises(BadSettings, match=f"todo.{line.split()[0]}"):
        read(tmp_path, line)


def test_a_secret_that_is_refused_is_not_shown(tmp_path: Path) -> None:
    """What is wrong with a secret is said without it."""
    with pytest.raises(BadSettings, match="link_secret") as refused:
        read(tmp_path, 'link_secret = "shorty"')
    assert "shorty" not in str(refused.value)
