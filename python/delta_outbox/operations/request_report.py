"""What a request is about, as it is shown before and after it is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RequestReport:
    """A request, expanded.

    Args:
        kind: replay, kill or release.
        counts: state, event_type, destination and deliveries of what it gets.
        examples: a few of those deliveries.
        left_out: deliveries that it names and does not get; the column refusal says why.
        passed_keys: ordering keys of a replay whose later events were delivered already.
        command_id: of the command that was appended; None if nothing was.
    """

    kind: str
    counts: Sequence[Mapping[str, object]]
    examples: Sequence[Mapping[str, object]]
    left_out: Sequence[Mapping[str, object]]
    passed_keys: int = 0
    command_id: str | None = None

    @property
    def deliveries(self) -> int:
        """Return how many deliveries the request gets."""
        return sum(int(str(row["deliveries"])) for row in self.counts)

    @property
    def warnings(self) -> list[str]:
        """Return what the operator should know before asking."""
        if not self.passed_keys:
            return []
        have, those = (
            ("key has", "that key") if self.passed_keys == 1 else ("keys have", "those keys")
        )
        later = f"{self.passed_keys} {have} later events delivered already"
        return [f"{later}: order on {those} is not restored."]

    def as_dict(self) -> dict[str, object]:
        """Return the document that --json prints."""
        return {
            "kind": self.kind,
            "command_id": self.command_id,
            "deliveries": self.deliveries,
            "counts": list(self.counts),
            "examples": list(self.examples),
            "left_out": list(self.left_out),
            "warnings": self.warnings,
        }
