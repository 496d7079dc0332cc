"""Finds the policy of each delivery of a claim; a claim has few different ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_outbox.core.arrow import Mask
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet
from delta_outbox.lifecycle.policy_columns import OnDead


class ClaimPolicies(Sequence[DeliveryPolicy]):
    """The policy of each delivery, in the order of their claim.

    Args:
        kinds: the different ones.
        codes: of each delivery, which of them.
    """

    __slots__ = ("codes", "kinds")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kinds: Sequence[DeliveryPolicy], codes: npt.NDArray[np.int32]) -> None:
        self.kinds = kinds
        self.codes = codes

    @classmethod
    def by_type(cls, event_types: pa.ChunkedArray, policies: PolicySet) -> ClaimPolicies:
        """Return the policies of event types.

        Args:
            event_types: of each delivery.
            policies: the delivery policies in force.
        """
        encoded = event_types.combine_chunks().dictionary_encode()
        kinds = [policies.match(name) for name in encoded.dictionary.to_pylist()]
        return cls(kinds, encoded.indices.to_numpy())

    @overload
    def __getitem__(self, index: int) -> DeliveryPolicy: ...
    @overload
    def __getitem__(self, index: slice) -> ClaimPolicies: ...
    def __getitem__(self, index: int | slice) -> DeliveryPolicy | ClaimPolicies:
        if isinstance(index, slice):
            return ClaimPolicies(self.kinds, self.codes[index])
        return self.kinds[int(self.codes[index])]

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"ClaimPolicies({len(self)} deliveries, {len(self.kinds)} kinds)"

    def at(self, places: npt.NDArray[np.int64] | Mask) -> ClaimPolicies:
        """Return the policies of some deliveries.

        Args:
            places: theirs, or a mask of all.
        """
        return ClaimPolicies(self.kinds, self.codes[places])

    def column(self, value: Callable[[DeliveryPolicy], object], kind: pa.DataType) -> pa.Array:
        """Return a value of the policy of each delivery.

        Args:
            value: of a policy.
            kind: what the values are.
        """
        return pa.array([value(one) for one in self.kinds], kind).take(pa.array(self.codes))

    @property
    def hold(self) -> pa.BooleanArray:
        """Say which deliveries hold their key once they are DEAD."""
        return self.column(lambda policy: policy.on_dead is OnDead.HOLD, pa.bool_())

    @property
    def present(self) -> list[DeliveryPolicy]:
        """Return those that a delivery has."""
        return [self.kinds[code] for code in np.unique(self.codes)]
