"""What is secret in settings, and that it is hidden however it is written."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_outbox.core.redaction import describe, scrub
from delta_outbox.core.secrets import (
    cause_to_show,
    hiding,
    literal_secrets,
    secrets_of,
    without_secrets,
)
from delta_outbox.lifecycle.results import Failed
from delta_outbox.runtime.settings_file import load_settings

TABLE = """
[publishers.a]
type = "${KIND}"
"bootstrap.servers" = "${PLACE}"
topics = ["${PLACE}"]
"sasl.username" = "user-literal"
"sasl.password" = "password-literal"
"ssl.key.location" = "/keys/plain.pem"
"ssl.key.pem" = "pem-literal"
"token.endpoint.url" = "https://plain.example/token"
retries = "${NUMBER}"
hook = "https://host/${HOOK}"
account = "${LOGIN}"
comment = "plain words"
broker = "amqp://guest:gu%40est@host/x"
nodes = [{host = "plain.example", api_key = "nested-literal"}, "plain"]
credentials = ["listed-literal"]
"""
ENVIRON = {
    "KIND": "kafka",
    "PLACE": "localhost:9092",
    "NUMBER": "1000",
    "HOOK": "T0/from-environment",
    "LOGIN": "login-from-environment",
}


def settings_of(folder: Path, text: str = TABLE, **environ: str) -> dict[str, object]:
    """Return the settings of the destination `a` in a file with this text."""
    file = folder / "given.toml"
    file.write_text(text)
    file.chmod(0o600)
    found = load_settings(path=file, environ=environ or ENVIRON, folder=folder)
    return dict(found.publishers["a"].settings)


def test_what_is_secret(tmp_path: Path) -> None:
    """Secret is what is called so, what the environment gives, and the user in a URL; places,
    kinds, numbers and words of the file are not.
    """
    assert {
        "user-literal",
        "password-literal",
        "pem-literal",
        "https://host/T0/from-environment",
        "login-from-environment",
        "guest:gu%40est",
        "gu@est",
        "nested-literal",
        "listed-literal",
    } == set(secrets_of(settings_of(tmp_path)))


def test_secrets_that_stand_in_the_file(tmp_path: Path) -> None:
    """A secret that comes from the environment does not stand in the file."""
    expected = ["sasl.username", "sasl.password", "ssl.key.pem", "broker", "nodes.api_key"]
    assert {*expected, "credentials"} == set(literal_secrets(settings_of(tmp_path)))
    only = "[publishers.a]\ntype = 'null'\npassword = '${P}'\nurl = 'https://$$x@host'\n"
    assert ["url"] == literal_secrets(settings_of(tmp_path, only, P="from-environment"))


@settings(deadline=None)
@given(st.text("ab \"'\\\n\t%/@\u00e9\u202e\U0001f600", min_size=8, max_size=20))
def test_a_secret_is_hidden_however_it_is_written(secret: str) -> None:
    """A secret does not show as it is, in a representation, in JSON, in a URL or on one line."""
    if len(" ".join(secret.split())) < 4:
        return
    for written in (
        secret,
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
        " ".join(secret.split()),
    ):
        assert written not in without_secrets(f"<{written}>", [secret])


def test_lines_of_a_key_are_hidden_one_by_one() -> None:
    """A key of several lines is hidden also where only one of them is shown."""
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END PRIVATE KEY-----"
    shown = scrub("cannot read MIIEvQIBADANBgkqhkiG9w0B in a short file", secrets=[key])
    assert "cannot read *** in a short file" == shown


def test_secrets_in_force_are_hidden_in_every_thread() -> None:
    """While secrets are in force no scrubbed text shows them, wherever it is made; neither a cap
    nor a name before it leaves half of one. Afterwards they are forgotten.
    """
    made: list[str] = []
    secret = "first,second;third"
    with hiding([secret]):
        texts = (f"password={secret}", "x" * 495 + secret, " " * 3999 + secret)
        for text in texts:
            thread = threading.Thread(target=lambda: made.append(Failed(error=text).error))  # noqa: B023
            thread.start()
            thread.join()
        made.append(describe(OSError(secret)))
    assert 4 == len(made)
    assert not any(part in text for text in made for part in ("firs", "second", "third"))
    assert secret == scrub(secret)


def test_a_cause_that_shows_a_secret_is_left_out() -> None:
    """An error is a cause of ours unless its trace, with its own causes, shows a secret."""
    clean, dirty = OSError("refused"), OSError("refused s3cret-value")
    outer = ValueError("wrong")
    outer.__cause__ = dirty
    assert clean is cause_to_show(clean, ["s3cret-value"])
    assert cause_to_show(dirty, ["s3cret-value"]) is None
    assert cause_to_show(outer, ["s3cret-value"]) is None


@pytest.mark.parametrize("secret", ["", "abc", "  a ", "\n\n\n\n"])
def test_ordinary_text_is_not_blanked(secret: str) -> None:
    """A secret of fewer than four characters would blank ordinary text; it is not looked for."""
    assert "an abc  a \n\n\n\n." == without_secrets("an abc  a \n\n\n\n.", [secret.strip()])
