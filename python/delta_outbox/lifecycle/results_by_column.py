"""The results of a claim, stored by columns: nearly all deliveries were delivered.

Only what was not, or is told apart for another reason, is an object here; whoever asks for one of
the others is given one made for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar, cast, overload

import numpy as np
import pyarrow as pa

from delta_outbox.lifecycle.results import Delivered, JsonText

R = TypeVar("R")

RECEIPT_COLUMNS: Final = ("receipt", "outcome", "outcome_data")
"""What a destination may say of a delivery: text, and null where it is one of the others."""


class Results(Sequence[R], Generic[R]):
    """A result for each delivery of a claim, in its order.

    Args:
        size: deliveries.
        others: results by position, ascending; whatever is not among them was delivered.
        receipts: columns of `RECEIPT_COLUMNS`, a row per delivery; all null if left out.
    """

    __slots__ = ("_size", "others", "receipts")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, size: int, others: Mapping[int, R], receipts: Mapping[str, pa.Array] | None = None
    ) -> None:
        self._size = size
        self.others = others
        self.receipts = receipts or {name: pa.nulls(size, pa.string()) for name in RECEIPT_COLUMNS}

    @classmethod
    def of(cls, results: Sequence[R]) -> Results[R]:
        """Return results by columns, those given if they are.

        Args:
            results: one per delivery.
        """
        if isinstance(results, Results):
            return results
        return cls(len(results), dict(enumerate(results)))

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> list[R]: ...
    def __getitem__(self, index: int | slice) -> R | list[R]:
        if isinstance(index, slice):
            return [self[position] for position in range(self._size)[index]]
        position = range(self._size)[index]
        return self.others[position] if position in self.others else self._delivered(position)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[R]:
        return (self[position] for position in range(self._size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Results({self._size} deliveries, others={dict(self.others)!r})"

    def replaced(self, changes: Mapping[int, R]) -> Results[R]:
        """Return these results but for some.

        Args:
            changes: results by position.
        """
        return Results(self._size, dict(sorted({**self.others, **changes}.items())), self.receipts)

    def without(self, positions: Iterable[int]) -> Results[R]:
        """Return the results of the deliveries that stay when some are left out.

        Args:
            positions: of those to leave out.
        """
        kept = np.ones(self._size, dtype=np.bool_)
        kept[list(positions)] = False
        number = np.cumsum(kept) - 1
        others = {
            int(number[position]): one for position, one in self.others.items() if kept[position]
        }
        receipts = {name: column.filter(pa.array(kept)) for name, column in self.receipts.items()}
        return Results(int(kept.sum()), others, receipts)

    def _delivered(self, position: int) -> R:
        receipt, outcome, data = (self.receipts[name][position].as_py() for name in RECEIPT_COLUMNS)
        return cast(
            "R", Delivered(receipt=_json(receipt), outcome=outcome, outcome_data=_json(data))
        )


def _json(text: str | None) -> JsonText | None:
    return None if text is None else JsonText(text)
