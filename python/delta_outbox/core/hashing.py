"""Finds out whether one of many texts is there twice, with eight bytes for each.

Texts that are equal have the same number; that two others have is as likely as that random numbers
have, and then whoever asks looks closer. What is kept at once is bounded, not by how many there
are: of more than fit, those with one remainder are compared after those with another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MOST: Final = 4_000_000  # numbers that are held at once: 32 MB
ROWS: Final = 50_000  # texts that are numbered at once
LONGEST: Final = 512  # bytes of a text that is numbered among others; a longer one is by itself
_WORD: Final = 8  # bytes
_SEED: Final = 20260101

Numbers = npt.NDArray[np.uint64]


def may_repeat(
    read: Callable[[], Iterable[pa.ChunkedArray]], count: int, *, most: int = MOST
) -> bool:
    """Say whether a text may be there twice; if not, none is.

    Args:
        read: returns all texts, in parts; it is called once for every `most` of them.
        count: how many there are.
        most: of their numbers are held at once.
    """
    rounds = -(-count // most) or 1
    for remainder in range(rounds):
        kept = []
        for texts in read():
            numbers = numbers_of(texts)
            kept.append(numbers[numbers % rounds == remainder] if rounds > 1 else numbers)
        numbers = np.concatenate(kept) if kept else np.empty(0, np.uint64)
        numbers.sort()
        if np.any(numbers[1:] == numbers[:-1]):
            return True
    return False


def numbers_of(texts: pa.ChunkedArray) -> Numbers:
    """Return a number for each text.

    Args:
        texts: strings, none of them null.
    """
    parts = [_numbers(part) for part in in_parts(texts)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def in_parts(texts: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield texts, as many at a time as are numbered at once.

    Args:
        texts: any number.
    """
    for chunk in texts.chunks:
        for first in range(0, len(chunk), ROWS):
            yield chunk.slice(first, ROWS)


def _numbers(texts: pa.Array) -> Numbers:
    texts = texts.cast(pa.large_string())
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    is_long = lengths > LONGEST
    if is_long.any():  # one of them must not make all others as wide
        numbers = np.empty(len(texts), np.uint64)
        numbers[~is_long] = _numbers(texts.filter(pa.array(~is_long)))
        for row in np.flatnonzero(is_long).tolist():
            digest = hashlib.blake2b(texts[row].as_buffer(), digest_size=_WORD).digest()
            numbers[row] = int.from_bytes(digest, "little")
        return numbers
    width = max(1, -(-int(lengths.max(initial=0)) // _WORD))
    padded = np.zeros((len(texts), width * _WORD), np.uint8)
    if offsets[-1] > offsets[0]:
        given = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
        padded[np.arange(width * _WORD) < lengths[:, None]] = given
    words = padded.view(np.uint64)
    # Each word is mixed as splitmix64 does (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    # Generators, 2014), which leaves 0 as it is, and weighed by its place: how wide others are does
    # not count.
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words = (words ^ (words >> np.uint64(31))) * _weights(width)
    summed: Numbers = words.sum(axis=1, dtype=np.uint64)
    return summed


def _weights(width: int) -> Numbers:
    weights: Numbers = np.random.default_rng(_SEED).integers(0, 2**64, width, dtype=np.uint64)
    weights |= np.uint64(1)  # odd, so that none takes a bit off its word
    return weights
