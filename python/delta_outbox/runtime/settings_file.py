"""Read the settings: find the file, check every key, fill in environment variables.

The first file found wins and nothing is merged: `--config`, `OUTBOX_CONFIG`,
`OUTBOX_HOME/outbox.toml`, `outbox.toml` in the working folder, else the defaults.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.reserved_names import RESERVED_DESTINATIONS
from delta_outbox.core.secrets import literal_secrets
from delta_outbox.core.setting_rules import (
    APPEND,
    LIMITS,
    OF_HMAC,
    QUEUE,
    RELAY,
    SIGNATURE,
    STORAGE,
    TODO,
    WORKFLOWS,
    Rule,
)
from delta_outbox.core.settings import (
    AppendSettings,
    DestinationLimits,
    FromEnvironment,
    PublisherSettings,
    QueueSettings,
    RelaySettings,
    SecretMapping,
    Settings,
    SignatureSettings,
    StorageSettings,
    ThirdPartySettings,
    TodoSettings,
    Unset,
    WorkflowSettings,
    dotted,
    unset_in,
)
from delta_outbox.runtime.ownership import check_settings_owner

__all__ = [
    "AppendSettings",
    "DestinationLimits",
    "PublisherSettings",
    "RelaySettings",
    "SecretMapping",
    "Settings",
    "StorageSettings",
    "WorkflowSettings",
    "dotted",
    "load_settings",
]

logger = logging.getLogger(__name__)

FILE_NAME: Final = "outbox.toml"
CONFIG_VARIABLE: Final = "OUTBOX_CONFIG"
_DESTINATION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # no `|`: it joins them
_THIRD_PARTY: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_ITEM_TYPE: Final = re.compile(r"[^/\s]+/[^/\s]+")
_REFERENCE: Final = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>[^}]*)(?P<closed>\}?))")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load_settings(
    *,
    home: Path | None = None,
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Find and read the settings.

    Args:
        home: the outbox's home; relative paths of `jsonl` destinations start here.
        path: the file named by `--config`; it must exist.
        environ: the environment (default: of this process).
        folder: the working folder (default: of this process).

    Raises:
        BadSettings: a file is missing or unreadable, or a key breaks a rule.
        NotYours: a file that was found, and not named, belongs to another user.
    """
    environ = os.environ if environ is None else environ
    found = _find(home=home, path=path, environ=environ, folder=folder or Path.cwd())
    document = {} if found is None else _read(found)
    if found is not None:
        _check_permissions(found, home=home)
    settings = _Reader(source=found, environ=environ, home=home).settings(document)
    if found is not None:
        _warn_of_readers(found, settings)
    return settings


def _find(
    *, home: Path | None, path: Path | None, environ: Mapping[str, str], folder: Path
) -> Path | None:
    named = path or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return folder / named.expanduser()
    candidates = [] if home is None else [home / FILE_NAME]
    found = next((file for file in [*candidates, folder / FILE_NAME] if _exists(file)), None)
    if found is not None:
        with contextlib.suppress(OSError):  # to read it gives the sentence
            check_settings_owner(found, home=home)
    return found


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:
        return True  # it cannot be looked at: reading it gives the sentence, skipping it none


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadSettings(
            f"{file}: the settings file cannot be read: {error.strerror or 'unknown error'}.",
            remedy="Correct --config or OUTBOX_CONFIG, or create the file.",
        ) from error
    except UnicodeDecodeError:
        # Not chained: its text quotes bytes of the file, and the file may hold secrets.
        raise BadSettings(f"{file}: the file must be UTF-8.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise BadSettings(f"{file}: not valid TOML: {error}.") from None


def _check_permissions(file: Path, *, home: Path | None) -> None:
    """Keep the settings file of a home to its owner: it may hold secrets."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        # A link is somebody else's file; only what lies in the home itself is ours to tighten.
        if home is not None and file == home / FILE_NAME and not file.is_symlink():
            if mode & 0o077:
                file.chmod(0o600)
                logger.info("settings_tightened", extra={"file": str(file)})
        elif mode & stat.S_IWOTH:
            logger.warning("settings_writable_by_everybody", extra={"file": str(file)})
    except OSError as error:
        logger.warning(
            "settings_permissions_unchanged", extra={"file": str(file), "error": error.strerror}
        )


def _warn_of_readers(file: Path, settings: Settings) -> None:
    """Say so where others can read secrets: outside a home, the mode of a file is not ours."""
    tables = {
        f"publishers.{name}": described.settings for name, described in settings.publishers.items()
    }
    tables |= {f"third_parties.{name}": table for name, table in settings.of_third_parties.items()}
    tables["todo.kafka"] = settings.todo.kafka.client
    names = [
        f"{where}.{name}"
        for where, table in tables.items()
        for name in literal_secrets(table.as_written())
    ]
    if literal_secrets({"link_secret": settings.todo.link_secret}):
        names.append("todo.link_secret")
    names += [
        f'todo.signatures."{name}".secrets'
        for name, one in settings.todo.signatures.items()
        if literal_secrets({"secrets": list(one.secrets)})
    ]
    with contextlib.suppress(OSError):
        if names and stat.S_IMODE(file.stat().st_mode) & 0o044:
            logger.warning(
                "secrets_readable_by_others", extra={"file": str(file), "settings": names}
            )


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Turn a parsed document into settings; every message names file, key and rule."""

    source: Path | None
    environ: Mapping[str, str]
    home: Path | None

    def settings(self, document: Mapping[str, object]) -> Settings:
        """Check and convert the whole document."""
        sections = (
            *("relay", "append", "storage", "publishers"),
            *("workflows", "third_parties", "todo"),
        )
        self._known("", document, sections)
        publishers = self._publishers(document)
        return Settings(
            relay=RelaySettings(**self._section("relay", document, RELAY)),
            append=AppendSettings(**self._section("append", document, APPEND)),
            storage=StorageSettings(**self._section("storage", document, STORAGE)),
            publishers=publishers,
            workflows=WorkflowSettings(**self._section("workflows", document, WORKFLOWS)),
            third_parties=self._third_parties(document, publishers),
            todo=self._todo(document),
            source=self.source,
        )

    def _section(
        self, name: str, document: Mapping[str, object], rules: Mapping[str, Rule]
    ) -> dict[str, Any]:
        table = self._table(name, document.get(name, {}))
        self._known(f"{name}.", table, tuple(rules))
        return self._checked(name, table, rules)

    def _checked(
        self, name: str, table: Mapping[str, object], rules: Mapping[str, Rule]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in table.items():
            where = f"{name}.{key}"
            filled = self._filled(where, value)
            if not rules[key].accept(filled):
                # What came is shown as it stands in the file: a reference stays a reference.
                came = _kind(value) if rules[key].is_secret else _shown(value)
                self._refuse(f"`{where}` {rules[key].sentence}. Got: {came}.")
            values[key] = rules[key].convert(filled)
        return values

    def _todo(self, document: Mapping[str, object]) -> TodoSettings:
        table = dict(self._table("todo", document.get("todo", {})))
        signatures = self._signatures(table.pop("signatures", {}))
        kafka = self._queue(self._table("todo.kafka", table.pop("kafka", {})))
        self._known("todo.", table, tuple(TODO))
        values = self._checked("todo", table, TODO)
        for name in ("tls_certificate", "tls_key", "jwks"):
            if name in values and "://" not in values[name]:
                values[name] = self._below_home(f"todo.{name}", values[name])
        return TodoSettings(**values, signatures=signatures, kafka=kafka)

    def _queue(self, table: Mapping[str, object]) -> QueueSettings:
        ours = {key: value for key, value in table.items() if key in QUEUE}
        client = {
            key: self._own(f"todo.kafka.{key}", value)
            for key, value in table.items()
            if key not in QUEUE
        }
        return QueueSettings(
            client=SecretMapping(client), **self._checked("todo.kafka", ours, QUEUE)
        )

    def _signatures(self, value: object) -> dict[str, SignatureSettings]:
        return {
            name: self._signature(name, entry)
            for name, entry in self._table("todo.signatures", value).items()
        }

    def _signature(self, name: str, value: object) -> SignatureSettings:
        where = f'todo.signatures."{name}"'
        if not _ITEM_TYPE.fullmatch(name):
            self._refuse(
                "`todo.signatures`: a table must be named by a type of items, as "
                f'"workflow/task". Got: {name!r}.'
            )
        table = self._table(where, value)
        self._known(f"{where}.", table, tuple(SIGNATURE))
        for key in ("scheme", "person", "secrets"):
            if key not in table:
                self._refuse(f"`{where}` must have `{key}`.")
        # Only whoever checks signatures misses a secret that is not set.
        unset = tuple(unset_in(self._own(f"{where}.secrets", table["secrets"])))
        given = {key: entry for key, entry in table.items() if not (unset and key == "secrets")}
        values = self._checked(where, given, SIGNATURE)
        if values["scheme"] == "hmac":
            if "header" not in table:
                self._refuse(f"`{where}` must have `header`: the one that holds the signature.")
        elif own := [key for key in OF_HMAC if key in table]:
            self._refuse(
                f"`{where}.{own[0]}` must be left out: only the scheme hmac leaves it open."
            )
        return SignatureSettings(**{"secrets": unset, **values})

    def _publishers(self, document: Mapping[str, object]) -> dict[str, PublisherSettings]:
        tables = self._table("publishers", document.get("publishers", {}))
        # No publishers at all means the shipped one; an outbox without a destination is useless.
        tables = tables or {"default": {}}
        return {name: self._publisher(name, table) for name, table in tables.items()}

    def _publisher(self, name: str, value: object) -> PublisherSettings:
        where = f"publishers.{name}"
        if not _DESTINATION.fullmatch(name):
            self._refuse(
                f"`publishers`: the name of a destination must match {_DESTINATION.pattern}. "
                f"Got: {name!r}."
            )
        self._refuse_reserved("publishers", name)
        table = self._table(where, value)
        is_shipped = name == "default" and not table
        kind = self._filled(f"{where}.type", "jsonl" if is_shipped else table.get("type"))
        if not isinstance(kind, str) or not kind:
            came = _kind(table["type"]) if "type" in table else "nothing"
            self._refuse(f"`{where}.type` must be the name of a publisher, a text. Got: {came}.")
        own = {
            key: self._own(f"{where}.{key}", entry)
            for key, entry in table.items()
            if key != "type" and key not in LIMITS
        }
        if kind == "jsonl":
            # Destinations do not share a folder unless somebody says so.
            folder = "delivered" if name == "default" else f"delivered-{name}"
            own["path"] = self._below_home(f"{where}.path", own.get("path", folder))
        limits = self._limits(where, table)
        return PublisherSettings(type=kind, settings=SecretMapping(own), limits=limits)

    def _third_parties(
        self, document: Mapping[str, object], destinations: Collection[str]
    ) -> dict[str, ThirdPartySettings]:
        """Read what `provide` of the modules of workflows is given, whose keys are the author's,
        and the limits, whose keys are those of destinations.
        """
        made: dict[str, ThirdPartySettings] = {}
        for name, value in self._table("third_parties", document.get("third_parties", {})).items():
            if not _THIRD_PARTY.fullmatch(name):
                self._refuse(
                    "`third_parties`: the name of a third party must be lower-case words joined "
                    f"by `_`, as its tasks have it. Got: {name!r}."
                )
            self._refuse_reserved("third_parties", name)
            if name in destinations:
                self._refuse(
                    f"`third_parties.{name}`: must not have the name of a destination: "
                    f"[publishers.{name}] has it. Rename the destination."
                )
            where = f"third_parties.{name}"
            table = self._table(where, value)
            own = {
                key: self._own(f"{where}.{key}", entry)
                for key, entry in table.items()
                if key not in LIMITS
            }
            made[name] = ThirdPartySettings(
                settings=SecretMapping(own), limits=self._limits(where, table)
            )
        return made

    def _refuse_reserved(self, where: str, name: str) -> None:
        if name in RESERVED_DESTINATIONS:
            self._refuse(
                f"`{where}.{name}`: must be another name: {name} stands for what waits for a "
                "person, or for nobody."
            )

    def _limits(self, where: str, table: Mapping[str, object]) -> DestinationLimits:
        given = {key: value for key, value in table.items() if key in LIMITS}
        if "breaker_seconds" in given and "breaker_failures" not in given:
            self._refuse(
                f"`{where}.breaker_seconds` must come with `breaker_failures`: give both or none."
            )
        return DestinationLimits(**self._checked(where, given, LIMITS))

    def _below_home(self, where: str, value: object) -> str:
        if isinstance(value, Unset):
            return value
        if not isinstance(value, str) or not value:
            self._refuse(f"`{where}` must be a path, a text. Got: {_kind(value)}.")
        return str((self.home.absolute() if self.home else Path()) / Path(value).expanduser())

    def _filled(self, where: str, value: object) -> Any:
        """Replace `${NAME}` by that variable and `$$` by `$`, in every text below the value."""
        filled = self._own(where, value)
        for unset in unset_in(filled):
            raise unset.error()
        return filled

    def _own(self, where: str, value: object) -> Any:
        """Do the same for a table that somebody else uses: what is not set is missed by him."""
        if isinstance(value, str):
            return self._text(where, value)
        if isinstance(value, list):
            return [self._own(f"{where}[{n}]", entry) for n, entry in enumerate(value)]
        if isinstance(value, dict):
            return {key: self._own(f"{where}.{key}", entry) for key, entry in value.items()}
        return value

    def _text(self, where: str, value: str) -> str:
        names = [
            self._variable(where, match)
            for match in _REFERENCE.finditer(value)
            if not match["escaped"]
        ]
        for name in names:
            if name not in self.environ:
                return Unset(value, variable=name, where=where, file=self.source)
        filled = _REFERENCE.sub(
            lambda match: "$" if match["escaped"] else self.environ[match["name"]], value
        )
        return FromEnvironment(filled) if names else filled

    def _variable(self, where: str, match: re.Match[str]) -> str:
        name = match["name"]
        if not match["closed"] or not _VARIABLE.fullmatch(name):
            self._refuse(
                f"`{where}` holds a reference that is not of the form ${{NAME}} "
                "(a literal `$` before a brace is written `$$`)."
            )
        return name

    def _table(self, where: str, value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            self._refuse(f"`{where}` must be a table. Got: {_kind(value)}.")
        return value

    def _known(self, prefix: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                self._refuse(f"`{prefix}{key}` is not a setting. Known here: {', '.join(known)}.")

    def _refuse(self, message: str, *, remedy: str | None = None) -> NoReturn:
        raise BadSettings(f"{self.source}: {message}" if self.source else message, remedy=remedy)


def _kind(value: object) -> str:
    """Name the kind of a value without showing it."""
    names = {dict: "a table", list: "a list", str: "a text", bool: "true or false"}
    numbers = {int: "a whole number", float: "a number", type(None): "nothing"}
    return (names | numbers).get(type(value), "a date or time")


def _shown(value: object) -> str:
    return _kind(value) if isinstance(value, (dict, list)) else repr(value)[:80]
