"""Ways to alter any file, whatever is in it."""

import numpy as np


def flip(data, rng):
    """Change a few bytes."""
    altered = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        altered[rng.integers(len(altered))] ^= 1 << rng.integers(8)
    return bytes(altered)


def truncate(data, rng):
    """Cut the end, or the beginning."""
    at = int(rng.integers(len(data)))
    return data[:at] if rng.random() < 0.8 else data[at:]


def insert(data, rng):
    """Put random bytes somewhere."""
    at = int(rng.integers(len(data)))
    return data[:at] + rng.bytes(int(rng.integers(1, 200))) + data[at:]


def repeat(data, rng):
    """Double a piece."""
    start, stop = np.sort(rng.integers(len(data) + 1, size=2))
    return data[:stop] + data[start:]


def blank(data, rng):
    """Zero a piece, as a lost disk block does."""
    start, stop = np.sort(rng.integers(len(data) + 1, size=2))
    return data[:start] + bytes(int(stop - start)) + data[stop:]


def junk(data, rng):
    """Return random bytes that have nothing to do with the file."""
    return rng.bytes(int(rng.integers(0, 5000)))


WAYS = {"flip": flip, "cut": truncate, "insert": insert, "repeat": repeat, "blank": blank}
