"""Compares candidate events with those of the log: the same id must have the same content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import Mask, mask_of
from delta_outbox.producer.candidates import COLUMNS, DEFAULTED
from delta_outbox.producer.rejection import Rejection


@dataclass(frozen=True, kw_only=True)
class LogMatch:
    """What the log says about candidates: which are there already, and which contradict it."""

    already_present: Mask  # one per candidate: same id, same given columns
    rejections: tuple[Rejection, ...]


def same_content(candidate: pa.Table, existing: pa.Table) -> Mask:
    """Tell, row by row, whether a candidate says the same as the event that exists.

    Only the given columns count: those that `candidate` has, and of `created_at` and `ordinal`
    only the values that are not null. Maps are compared as sets; none and empty are the same.

    Args:
        candidate: rows with the types of the log.
        existing: as many rows, each the event that the candidate of that row is compared with;
            at least the columns of `candidate`.
    """
    same = np.ones(candidate.num_rows, dtype=np.bool_)
    for differs in differing(candidate, existing).values():
        same &= ~differs
    return same


def differing(candidate: pa.Table, existing: pa.Table) -> dict[str, Mask]:
    """Tell, for each given column and row, whether it differs (see `same_content`)."""
    masks: dict[str, Mask] = {}
    for name in candidate.column_names:
        ours = candidate[name].cast(COLUMNS[name])
        theirs = existing[name].cast(COLUMNS[name])
        compare = _maps_differ if pa.types.is_map(COLUMNS[name]) else _values_differ
        masks[name] = compare(ours, theirs)
        if name in DEFAULTED:
            masks[name] &= mask_of(ours.is_valid())
    return masks


def against_log(candidate: pa.Table, existing: pa.Table, lines: Sequence[int]) -> LogMatch:
    """Compare candidates with the events of the log that have their ids.

    Args:
        candidate: rows with the types of the log, one per id.
        existing: the first copy of every event that has one of these ids, in any order.
        lines: the line of each candidate.
    """
    found = existing["event_id"].cast(COLUMNS["event_id"]).combine_chunks()
    places = pc.index_in(candidate["event_id"], value_set=found)
    rows = np.flatnonzero(mask_of(places.is_valid()))
    masks = differing(candidate.take(rows), existing.take(places.drop_null()))
    present = np.zeros(candidate.num_rows, dtype=np.bool_)
    present[rows] = True
    rejections = []
    for row, names in contradictions(masks):
        present[rows[row]] = False
        rejections.append(
            Rejection(
                line=int(lines[rows[row]]),
                field="event_id",
                rule="same_id_same_content",
                message=f"the log has this event_id with other content ({', '.join(names)}).",
            )
        )
    return LogMatch(already_present=present, rejections=tuple(rejections))


def contradictions(masks: dict[str, Mask]) -> list[tuple[int, list[str]]]:
    """List the rows that differ, each with the columns in which it does."""
    if not masks:
        return []
    rows = np.flatnonzero(np.any(np.stack(list(masks.values())), axis=0))
    return [(int(row), [name for name, mask in masks.items() if mask[row]]) for row in rows]


def _values_differ(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> Mask:
    both_null = pc.and_(ours.is_null(), theirs.is_null())
    return ~mask_of(pc.or_(pc.fill_null(pc.equal(ours, theirs), False), both_null))


def _maps_differ(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> Mask:
    """Sort the entries of every map by codes of name and value, then compare them pairwise."""
    left, right = entries(ours), entries(theirs)
    rows = len(ours)
    differs: Mask = np.bincount(left.rows, minlength=rows) != np.bincount(
        right.rows, minlength=rows
    )
    names = _codes(left.names, right.names)
    values = _codes(left.values, right.values)
    cut = len(left.rows)
    sides = []
    for side, part in ((left, slice(None, cut)), (right, slice(cut, None))):
        kept = ~differs[side.rows]
        triple = np.stack([side.rows, names[part], values[part]])[:, kept]
        sides.append(triple[:, np.lexsort(triple[::-1])])
    # The same number of entries per row on both sides, so that they stand opposite each other.
    unequal = np.any(sides[0][1:] != sides[1][1:], axis=0)
    differs[sides[0][0][unequal]] = True
    return differs


@dataclass(frozen=True, kw_only=True)
class Entries:
    """All entries of a column of maps, each with the row that it belongs to."""

    rows: npt.NDArray[np.int64]
    names: pa.Array
    values: pa.Array


def entries(column: pa.ChunkedArray) -> Entries:
    """Flatten a column of maps."""
    text = pa.large_string()  # all values of a batch together may pass 2 GiB
    rows, names, values = [], [], []
    start = 0
    for chunk in column.chunks:
        offsets = chunk.offsets.to_numpy()
        lengths = np.diff(offsets)
        if len(chunk):
            held = slice(int(offsets[0]), int(offsets[-1]))
            owners = np.repeat(np.arange(len(chunk)), lengths)
            # Arrow allows a map that is null to own entries all the same; they do not count.
            kept = np.asarray(chunk.is_valid())[owners]
            names.append(chunk.keys[held].cast(text).filter(kept))
            values.append(chunk.items[held].cast(text).filter(kept))
            rows.append(owners[kept] + start)
        start += len(chunk)
    return Entries(
        rows=np.concatenate(rows).astype(np.int64) if rows else np.empty(0, dtype=np.int64),
        names=pa.chunked_array(names, text).combine_chunks(),
        values=pa.chunked_array(values, text).combine_chunks(),
    )


def _codes(left: pa.Array, right: pa.Array) -> npt.NDArray[np.int64]:
    """Number the distinct texts of both sides alike; a null has a number of its own."""
    encoded = pa.concat_arrays([left, right]).dictionary_encode(null_encoding="encode")
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
