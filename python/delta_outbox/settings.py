"""The settings of an outbox: values with defaults; config.py reads them from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_EVENT_TYPE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}"


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


class SecretMapping(Mapping[str, object]):
    """A mapping that shows its names and never its values."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Copy the values, so that nobody changes them later."""
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> object:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: ***" for name in self._values)
        return f"{type(self).__name__}({{{shown}}})"


@dataclass(frozen=True, kw_only=True)
class RelaySettings:
    """What a relay takes at once, how often it polls, and how far it trusts clocks."""

    batch_size: int = 10_000
    batch_bytes: int = 64 * 1024**2  # of the payloads of a batch
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
    """What the operator promises of the store that holds the logs (storage_places.py)."""

    single_driver: bool = False  # one Spark driver, and never a second one, writes to them


@dataclass(frozen=True, kw_only=True)
class DestinationLimits:
    """How much a relay asks of one destination, whatever its type; None: no limit of its own."""

    workers: int | None = None  # publishing tasks at once
    rate_per_second: float | None = None  # events
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
class WorkflowSettings:
    """Where the workflows are: importable modules, found from the folder of dbt_project.yml."""

    modules: tuple[str, ...] = ()


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
    third_parties: Mapping[str, SecretMapping] = field(default_factory=dict)
    source: Path | None = None
