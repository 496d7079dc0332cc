"""Settings of a destination, read one by one from an allow-list."""

from __future__ import annotations

import difflib
import math
import re
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from delta_outbox.globs import glob_to_regex
from delta_outbox.settings import dotted


class SettingReader:
    """Reads settings and says what is wrong with them in one sentence.

    Args:
        type_: of the destination; every sentence begins with it.
        settings: as given.
        allowed: the only names that may be given.

    Raises:
        ValueError: a name is not on the list.
    """

    def __init__(self, type_: str, settings: Mapping[str, object], allowed: Sequence[str]) -> None:
        self._type = type_
        self._given = dotted(settings)
        for name in self._given:
            if name not in allowed:
                close = difflib.get_close_matches(name, allowed, n=1)
                hint = f" Did you mean `{close[0]}`?" if close else ""
                self.refuse(f"`{name}` is not among the settings that can be given.{hint}")

    def refuse(self, sentence: str) -> None:
        """Raise the sentence.

        Args:
            sentence: what, the rule and the remedy; never a secret.
        """
        raise ValueError(f"{self._type}: {sentence}")

    def has(self, name: str) -> bool:
        """Return whether a setting was given.

        Args:
            name: of the setting.
        """
        return name in self._given

    def text(self, name: str) -> str | None:
        """Return a text that is not empty, None if it was not given.

        Args:
            name: of the setting.
        """
        value = self._given.get(name)
        if value is None and name not in self._given:
            return None
        if not isinstance(value, str) or not value:
            # The value may be a secret, so it is not shown.
            self.refuse(f"`{name}` must be a text that is not empty.")
        return str(value)

    def choice(self, name: str, values: Sequence[str]) -> str:
        """Return one of some words; the first is the default.

        Args:
            name: of the setting.
            values: the words.
        """
        value = self._given.get(name, values[0])
        if value not in values:
            self.refuse(f"`{name}` must be {' or '.join(values)}. Got: {value!r}.")
        return str(value)

    def integer(self, name: str, *, least: int, most: int) -> int | None:
        """Return a whole number, None if it was not given.

        Args:
            name: of the setting.
            least: the smallest that is allowed.
            most: the largest that is allowed.
        """
        if name not in self._given:
            return None
        value = self._given[name]
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value, re.ASCII):
            value = int(value)  # an environment variable is always a text
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(f"`{name}` must be a whole number from {least} to {most}. Got: {value!r}.")
        assert isinstance(value, int)
        return value

    def seconds(self, name: str, *, default: float, most: float) -> float:
        """Return a number of seconds above 0.

        Args:
            name: of the setting.
            default: if it was not given.
            most: the largest that is allowed.
        """
        value = self._given.get(name, default)
        try:
            number = math.nan if isinstance(value, bool) else float(str(value))
        except ValueError:
            number = math.nan
        if not 0 < number <= most:
            self.refuse(f"`{name}` must be above 0 and at most {most:g} seconds. Got: {value!r}.")
        return number

    def flag(self, name: str) -> bool:
        """Return true or false; the default is false.

        Args:
            name: of the setting.
        """
        value = str(self._given.get(name, False)).lower()
        if value not in ("true", "false"):
            self.refuse(f"`{name}` must be true or false. Got: {self._given[name]!r}.")
        return value == "true"

    def file(self, name: str) -> str | None:
        """Return the path of a file that can be read, None if it was not given.

        Args:
            name: of the setting.
        """
        path = self.text(name)
        if path is not None:
            try:
                Path(path).open("rb").close()
            except OSError as error:
                self.refuse(f"`{name}` cannot be read: {error.strerror}. Got: {path!r}.")
        return path

    def globs(self, name: str, *, what: str, example: str) -> tuple[str, ...]:
        """Return shell globs; they must be given.

        Args:
            name: of the setting.
            what: what they match, in the plural.
            example: a good one.
        """
        value = self._given.get(name)
        globs = [value] if isinstance(value, str) else value
        if (
            not isinstance(globs, list | tuple)
            or not globs
            or not all(isinstance(glob, str) and glob for glob in globs)
        ):
            self.refuse(
                f"`{name}` must list the {what} that may be written, shell globs allowed, for "
                f'example ["{example}"]; ["*"] allows all. Got: {value!r}.'
            )
        assert isinstance(globs, list | tuple)
        for glob in globs:
            try:
                glob_to_regex(glob)
            except ValueError as error:
                self.refuse(f"`{name}` has the glob {glob!r}, but {error}.")
        return tuple(globs)

    def tls_context(self, *, wanted: bool) -> ssl.SSLContext | None:
        """Return a context that verifies certificate and host name, always; None without TLS.

        It reads `tls_ca_file`, `tls_cert_file` and `tls_key_file`.

        Args:
            wanted: whether the settings ask for TLS.
        """
        if not wanted:
            for name in ("tls_ca_file", "tls_cert_file", "tls_key_file"):
                if self.has(name):
                    self.refuse(f"`{name}` needs TLS: set tls = true.")
            return None
        authority, certificate = self.file("tls_ca_file"), self.file("tls_cert_file")
        key = self.file("tls_key_file")
        if key is not None and certificate is None:
            self.refuse("`tls_key_file` needs `tls_cert_file` beside it.")
        context = ssl.create_default_context()
        try:
            if authority is not None:
                context = ssl.create_default_context(cafile=authority)
            if certificate is not None:
                context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            self.refuse(
                f"`tls_ca_file`, `tls_cert_file` or `tls_key_file` is no PEM of its kind: {error}."
            )
        return context


def _no_password() -> str:
    raise ValueError("the key is encrypted, and a password for it cannot be given")


def matches_any(globs: Sequence[str], text: str) -> bool:
    """Return whether one of the globs matches a whole text.

    Args:
        globs: shell globs that `SettingReader.globs` has let through.
        text: for example a route.
    """
    return any(re.match(glob_to_regex(glob), text) for glob in globs)
