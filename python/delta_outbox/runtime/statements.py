"""The SQL that we run ourselves: texts of dbt's macros by name, which dbt has compiled once."""

from __future__ import annotations

from dataclasses import dataclass

INLINE = "{{ delta_outbox.relay_sql() }}"
"""What dbt compiles: every text after a line `--- name`."""


@dataclass(frozen=True, kw_only=True)
class Statements:
    """The compiled texts, by name.

    Args:
        texts: as `parse` finds them.
    """

    texts: dict[str, str]

    @classmethod
    def parse(cls, compiled: str) -> Statements:
        """Split the output of dbt's compiler.

        Args:
            compiled: what became of `INLINE`.
        """
        texts: dict[str, list[str]] = {}
        current: list[str] = []
        for line in compiled.splitlines():
            if line.startswith("--- "):
                current = texts.setdefault(line[4:].strip(), [])
            else:
                current.append(line)
        return cls(texts={name: "\n".join(lines).strip() for name, lines in texts.items()})

    def fill(self, name: str, **values: object) -> str:
        """Return a text with its names in double underscores replaced.

        Args:
            name: which text.
            values: name to what stands there; only text of our own making, never a user's.
        """
        text = self.texts[name]
        for key, value in values.items():
            text = text.replace(f"__{key}__", str(value))
        return text
