"""The settings of an outbox: values with defaults; runtime/settings_file.py reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from delta_outbox.core.errors import BadSettings

DEFAULT_EVENT_TYPE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}"

MAX_ID_BYTES = 512
"""Of an event's id, as in the constraint `text_not_too_long` of the log."""


def dotted(settings: Mapping[str, object]) -> dict[str, object]:
    """Flatten nested tables to dotted names: TOML reads an unquoted `a.b = 1` as a table."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": found for inner, found in dotted(value).items()}
        else:
            flat[name] = value
    return flat


class FromEnvironment(str):
    """A text of the settings that environment variables are a part of, so it may be secret."""

    __slots__ = ()


class Unset(FromEnvironment):
    """A text of the settings as it is written, because a variable that it refers to is not set."""

    __slots__ = ("_file", "_where", "variable")

    variable: str
    _where: str
    _file: Path | None

    def __new__(cls, text: str, *, variable: str, where: str, file: Path | None) -> Unset:
        """Keep the text, the variable, and where it is referred to."""
        made = super().__new__(cls, text)
        made.variable, made._where, made._file = variable, where, file
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, object]]:
        # A process of ours that is given settings must miss the variable where it reads the text.
        known: dict[str, object]
        known = {"variable": self.variable, "where": self._where, "file": self._file}
        return (str(self),), known

    def error(self) -> BadSettings:
        """Return what is raised where the text is used."""
        file = f"{self._file}: " if self._file else ""
        return BadSettings(
            f"{file}`{self._where}` refers to the environment variable {self.variable}, "
            "which is not set.",
            remedy=f"Set {self.variable} in the environment, or correct `{self._where}`.",
        )


def unset_in(value: object) -> Iterator[Unset]:
    """Yield the texts below a value that refer to a variable which is not set.

    Args:
        value: of the settings.
    """
    if isinstance(value, Unset):
        yield value
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from unset_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from unset_in(entry)


class SecretMapping(Mapping[str, object]):
    """A mapping that shows its names and never its values.

    Whoever reads a value for which an environment variable is missing gets BadSettings.
    """

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Copy the values, so that nobody changes them later."""
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> object:
        value = self._values[name]
        for unset in unset_in(value):
            raise unset.error()
        return value

    @property
    def unset(self) -> list[str]:
        """Return the environment variables that the values refer to and that are not set."""
        return [one.variable for one in unset_in(self._values)]

    def as_written(self) -> SecretMapping:
        """Return the same, but a text whose variable is not set is what stands in the file."""
        return SecretMapping({name: _as_written(value) for name, value in self._values.items()})

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: ***" for name in self._values)
        return f"{type(self).__name__}({{{shown}}})"


def _as_written(value: object) -> object:
    if isinstance(value, Unset):
        return FromEnvironment(value)
    if isinstance(value, Mapping):
        return {name: _as_written(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_as_written(entry) for entry in value]
    return value


@dataclass(frozen=True, kw_only=True)
class RelaySettings:
    """What a relay takes at once, how often it polls, and how far it trusts clocks."""

    batch_size: int = 50_000  # fewer where the destination is slow (relay/destinations/pace.py)
    batch_bytes: int = 64 * 1024**2  # of the payloads of a batch
    claims_in_flight: int = 2  # batches at once, for each destination
    poll_seconds: float = 1.0
    refresh_seconds: float = 45.0  # the views are at most a minute behind while a relay runs
    max_lanes: int = 64
    clock_skew_seconds: float = 3600.0
    parallelism: int | None = None  # None: what Spark has by default
    tracing: bool = False  # publish attempts become spans of OpenTelemetry


@dataclass(frozen=True, kw_only=True)
class AppendSettings:
    """What `append` accepts, and how far back it looks for an id it has seen."""

    max_payload_bytes: int = 900 * 1024
    max_header_bytes: int = 64 * 1024  # names and values of one event together
    event_type_pattern: str = DEFAULT_EVENT_TYPE_PATTERN  # matched against the whole type
    horizon_days: int = 7


@dataclass(frozen=True, kw_only=True)
class StorageSettings:
    """What the operator promises of the store that holds the logs (delta/storage_places.py)."""

    single_driver: bool = False  # one Spark driver, and never a second one, writes to them


@dataclass(frozen=True, kw_only=True)
class DestinationLimits:
    """How much relays ask of one destination, whatever its type; None: no limit of its own."""

    workers: int | None = None  # publishing tasks of each relay; tasks of a workflow, of all
    rate_per_second: float | None = None  # events, of all relays
    rate_per_key_per_second: float | None = None  # events of one key
    breaker_failures: int | None = None  # in a row; None: no breaker
    breaker_seconds: float = 30.0  # that the breaker stays open


@dataclass(frozen=True, kw_only=True)
class PublisherSettings:
    """One destination: the type of its publisher, that publisher's own settings, its limits."""

    type: str
    settings: SecretMapping = field(default_factory=SecretMapping)
    limits: DestinationLimits = field(default_factory=DestinationLimits)


@dataclass(frozen=True, kw_only=True)
class ThirdPartySettings:
    """One third party of workflows: what its tasks are given, its limits."""

    settings: SecretMapping = field(default_factory=SecretMapping)
    limits: DestinationLimits = field(default_factory=DestinationLimits)


@dataclass(frozen=True, kw_only=True)
class WorkflowSettings:
    """Where the workflows are, and how much of this machine their calls may take."""

    modules: tuple[str, ...] = ()  # importable, found from the folder of dbt_project.yml
    hosts: int = 4  # black boxes that are called at once: each call has a process of its own


@dataclass(frozen=True, kw_only=True)
class SignatureSettings:
    """How a third party signs its answers to items of one type."""

    scheme: str
    person: str  # as whom its answers are recorded
    secrets: tuple[str, ...] = field(repr=False)  # several while one is replaced
    header: str | None = None  # of `hmac` only, as all below
    encoding: str = "hex"
    algorithm: str = "sha256"
    prefix: str = ""


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """The Kafka by which answers come to items whose class has a topic."""

    client: SecretMapping = field(default_factory=SecretMapping)  # as of a publisher
    group: str = "delta-outbox-todo"  # of consumers: they share the partitions
    hold_seconds: float = 300.0  # that an answer waits for its item
    dead_letter_topic: str | None = None  # None: that of the answers with `.dead` behind it


@dataclass(frozen=True, kw_only=True)
class TodoSettings:
    """Where `outbox todo serve` listens, whom it believes, and how long it lets people wait."""

    host: str = "127.0.0.1"
    port: int = 8765  # 0: a free one
    tls_certificate: str | None = None  # files in PEM; relative paths start at the home
    tls_key: str | None = None
    behind_proxy: bool = False  # whoever stands before it speaks TLS with the world
    answer_seconds: float = 10.0  # that a request waits until its answer is on record
    rate_per_second: float = 20.0  # requests of one person; twice as many at once
    jwks: str | None = None  # keys of those who issue JWTs: a file, or an address
    issuer: str | None = None
    audience: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    person_claim: str = "sub"  # a dot leads into an object: `realm_access.roles`
    roles_claim: str = "roles"
    link_secret: str | None = field(default=None, repr=False)  # signs links to single items
    # By `workflow/task`: third parties that sign what they send instead of showing a key.
    signatures: Mapping[str, SignatureSettings] = field(default_factory=dict)
    kafka: QueueSettings = field(default_factory=QueueSettings)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, and the file they came from (None: the defaults)."""

    relay: RelaySettings = field(default_factory=RelaySettings)
    append: AppendSettings = field(default_factory=AppendSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    publishers: Mapping[str, PublisherSettings] = field(
        default_factory=lambda: {"default": PublisherSettings(type="jsonl")}
    )
    workflows: WorkflowSettings = field(default_factory=WorkflowSettings)
    third_parties: Mapping[str, ThirdPartySettings] = field(default_factory=dict)
    todo: TodoSettings = field(default_factory=TodoSettings)
    source: Path | None = None

    @property
    def of_third_parties(self) -> dict[str, SecretMapping]:
        """Return what `provide` is given: by third party, its own settings."""
        return {name: one.settings for name, one in self.third_parties.items()}

    def limits_of(self, destination: str) -> DestinationLimits:
        """Return what a relay may ask of a destination, or of a third party; of one that is not
        described (any more), no limits.

        Args:
            destination: its name.
        """
        described = self.publishers.get(destination) or self.third_parties.get(destination)
        return described.limits if described else DestinationLimits()
