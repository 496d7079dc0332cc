"""How the deliveries of a claim end, stored by columns: there are few kinds of endings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.lifecycle.endings import Ending

Codes = npt.NDArray[np.int64]


class Endings(Sequence[Ending]):
    """An ending for each delivery of a claim, in its order.

    Args:
        kinds: the different ones.
        codes: of each delivery, which of them.
        receipts: receipt, outcome and outcome_data of the deliveries whose kind does not say them.
    """

    def __init__(
        self, kinds: Sequence[Ending], codes: Codes, receipts: Mapping[str, pa.Array] | None = None
    ) -> None:
        self._kinds = kinds
        self._codes = codes
        self._receipts = receipts or {}

    @classmethod
    def of(cls, endings: Iterable[Ending]) -> Endings:
        """Return endings by columns, those given if they are.

        Args:
            endings: one per delivery.
        """
        if isinstance(endings, Endings):
            return endings
        kinds = list(endings)
        return cls(kinds, np.arange(len(kinds)))

    @overload
    def __getitem__(self, index: int) -> Ending: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ending]: ...
    def __getitem__(self, index: int | slice) -> Ending | list[Ending]:
        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        position = range(len(self))[index]
        found = {name: column[position].as_py() for name, column in self._receipts.items()}
        receipts = {name: value for name, value in found.items() if value is not None}
        kind = self._kinds[int(self._codes[position])]
        ending: Ending = replace(kind, **receipts) if receipts else kind
        return ending

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[Ending]:
        return (self[position] for position in range(len(self)))

    def counts(self) -> Iterator[tuple[Ending, int]]:
        """Yield each kind, and how many deliveries end so."""
        counted = np.bincount(self._codes, minlength=len(self._kinds))
        return zip(self._kinds, counted.tolist(), strict=True)

    def column(self, value: Callable[[Ending], object], kind: pa.DataType) -> pa.Array:
        """Return a value of each ending.

        Args:
            value: of a kind of endings.
            kind: what the values are.
        """
        return pa.array([value(one) for one in self._kinds], kind).take(pa.array(self._codes))

    def receipts(self, name: str) -> pa.Array:
        """Return what destinations said.

        Args:
            name: receipt, outcome or outcome_data.
        """
        of_kind = self.column(lambda one: getattr(one, name), pa.string())
        return pc.coalesce(self._receipts[name], of_kind) if name in self._receipts else of_kind
