"""Settings of a destination, read one by one from an allow-list."""

from __future__ import annotations

import difflib
import math
import re
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, overload

from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.settings import dotted

TLS_FILES: Final = ("ca_file", "client_certificate_file", "client_key_file")
_FILE_SUFFIX: Final = "_file"
_MIN_TIMEOUT: Final = 0.1  # seconds


class FilesInHome:
    """A publisher whose settings name files: a relative one lies in the home.

    Every process, on every machine of a cluster, finds the same file then.
    """

    @classmethod
    def prepare(cls, settings: Mapping[str, object], home: Path) -> dict[str, object]:
        """Return the settings with absolute names of files.

        Args:
            settings: as written in the settings file.
            home: the folder of the outbox.
        """
        return {
            name: str(home.absolute() / Path(value).expanduser())
            if name.endswith(_FILE_SUFFIX) and isinstance(value, str) and value
            else value
            for name, value in settings.items()
        }


class SettingReader:
    """Reads settings and says what is wrong with them in one sentence.

    Args:
        type_: of the destination; every sentence begins with it.
        settings: as given.
        allowed: the only names that may be given.
        tables: those of them that are read whole, by the caller.

    Raises:
        ValueError: a name is not on the list.
    """

    def __init__(
        self,
        type_: str,
        settings: Mapping[str, object],
        allowed: Sequence[str],
        *,
        tables: Sequence[str] = (),
    ) -> None:
        self._type = type_
        whole = {name: settings[name] for name in tables if name in settings}
        self._given = {**dotted({k: v for k, v in settings.items() if k not in whole}), **whole}
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

    @overload
    def text(self, name: str) -> str | None: ...
    @overload
    def text(self, name: str, *, default: str) -> str: ...
    def text(self, name: str, *, default: str | None = None) -> str | None:
        """Return a text; it is empty only where the default is.

        Args:
            name: of the setting.
            default: if it was not given.
        """
        if name not in self._given:
            return default
        value = self._given[name]
        if not isinstance(value, str) or not (value.strip() or default == value):
            # The value may be a secret, so it is not shown.
            self.refuse(f"`{name}` must be a text that is not empty.")
        return str(value)

    def required_text(self, name: str) -> str:
        """Return a text that must be given.

        Args:
            name: of the setting.
        """
        text = self.text(name)
        if text is None:
            self.refuse(f"`{name}` must be given.")
        return str(text)

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

    @overload
    def integer(self, name: str, *, least: int, most: int) -> int | None: ...
    @overload
    def integer(self, name: str, *, least: int, most: int, default: int) -> int: ...
    def integer(
        self, name: str, *, least: int, most: int, default: int | None = None
    ) -> int | None:
        """Return a whole number.

        Args:
            name: of the setting.
            least: the smallest that is allowed.
            most: the largest that is allowed.
            default: if it was not given.
        """
        if name not in self._given:
            return default
        value = self._given[name]
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value, re.ASCII):
            value = int(value)  # an environment variable is always a text
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(f"`{name}` must be a whole number from {least} to {most}. Got: {value!r}.")
        assert isinstance(value, int)
        return value

    def seconds(self, name: str, *, default: float, most: float) -> float:
        """Return a number of seconds.

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
        if not _MIN_TIMEOUT <= number <= most:
            self.refuse(
                f"`{name}` must be from {_MIN_TIMEOUT} to {most:g} seconds. Got: {value!r}."
            )
        return number

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false.

        Args:
            name: of the setting.
            default: if it was not given.
        """
        value = str(self._given.get(name, default)).lower()
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

        It reads the settings of `TLS_FILES`.

        Args:
            wanted: whether the settings ask for TLS.
        """
        if not wanted:
            for name in TLS_FILES:
                if self.has(name):
                    self.refuse(f"`{name}` needs TLS, and the settings ask for none.")
            return None
        authority, certificate, key = map(self.file, TLS_FILES)
        if key is not None and certificate is None:
            self.refuse("`client_key_file` needs `client_certificate_file` beside it.")
        try:
            context = ssl.create_default_context(cafile=authority)
            if certificate is not None:
                # Without this, OpenSSL asks for the password of a key on the terminal.
                context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            self.refuse(
                f"{' or '.join(map('`{}`'.format, TLS_FILES))} is no PEM of its kind: {error}."
            )
        context.minimum_version = ssl.TLSVersion.TLSv1_2
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
