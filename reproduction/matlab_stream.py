"""The random numbers that MATLAB draws after ``rng(seed)``, so that its data can be made again.

MATLAB's default stream is the Mersenne Twister. A uniform number takes two of its 32-bit words, as
in NumPy's `RandomState`. A normal number is drawn by the ziggurat of Marsaglia and Tsang (2000)
with 256 strips: the strip is the top byte of the second word of a uniform number u, and 2 u - 1
times the strip's width is the candidate. This was checked against normal numbers that MATLAB's
manual and many of its users have printed.
"""

import numpy as np
from numba import njit

_STRIPS = 256
# Where the tail begins, and the area of every strip (Marsaglia and Tsang).
_TAIL, _AREA = 3.6541528853610088, 0.00492867323399
# ``rng(0)`` is the stream of this seed.
_SEED_OF_ZERO = 5489
# A candidate, its test and a few tries in the tail never take more words than this.
_RESERVE = 256


class MatlabStream:
    """Uniform numbers, normal numbers and permutations as MATLAB's default stream gives them.

    Parameters
    ----------
    seed : int
        As in ``rng(seed)``.

    Examples
    --------
    >>> from reproduction.matlab_stream import MatlabStream
    >>> MatlabStream(0).uniform(2).round(4).tolist()
    [0.8147, 0.9058]
    >>> MatlabStream(0).normal((1, 3)).round(4).tolist()
    [[0.5377, 1.8339, -2.2588]]
    """

    def __init__(self, seed):
        self._source = np.random.RandomState(seed or _SEED_OF_ZERO)
        self._words = np.empty(0, dtype=np.uint32)
        self._position = 0

    def uniform(self, size):
        """Return ``rand(1, size)``."""
        self._reserve(2 * size)
        words = self._words[self._position : self._position + 2 * size].astype(np.int64)
        self._position += 2 * size
        return _uniform(words[0::2], words[1::2])

    def permutation(self, size):
        """Return ``randperm(size) - 1``."""
        return np.argsort(self.uniform(size), kind="stable")

    def normal(self, shape):
        """Return ``randn(shape)``; MATLAB fills column by column."""
        values = np.empty(shape[0] * shape[1])
        done = 0
        while done < len(values):
            self._reserve(2 * (len(values) - done) + 2 * _RESERVE)
            done, self._position = _fill_normal(
                values, done, self._words, self._position, _WIDTHS, _HEIGHTS
            )
        return values.reshape(shape, order="F")

    def _reserve(self, count):
        """Have at least this many words ahead."""
        ahead = self._words[self._position :]
        if len(ahead) < count:
            fresh = self._source.randint(0, 2**32, size=count - len(ahead), dtype=np.uint32)
            self._words, self._position = np.concatenate([ahead, fresh]), 0


def _ziggurat():
    """Widths of the strips from the bottom up (the base as wide as its area asks), and heights."""
    widths = np.zeros(_STRIPS + 1)
    widths[0], widths[1] = _AREA * np.exp(0.5 * _TAIL**2), _TAIL
    for i in range(2, _STRIPS):
        below = widths[i - 1]
        widths[i] = np.sqrt(-2 * np.log(_AREA / below + np.exp(-0.5 * below**2)))
    return widths, np.exp(-0.5 * widths**2)


_WIDTHS, _HEIGHTS = _ziggurat()


@njit(cache=True, nogil=True)
def _uniform(first, second):
    """53 bits of two words as a number in [0, 1)."""
    return ((first >> 5) * 67108864.0 + (second >> 6)) / 9007199254740992.0


@njit(cache=True, nogil=True)
def _fill_normal(values, done, words, position, widths, heights):
    """Fill `values` from `done` on while words last; return how far both have come."""
    while done < len(values) and position + _RESERVE <= len(words):
        second = np.int64(words[position + 1])
        signed = 2 * _uniform(np.int64(words[position]), second) - 1
        strip = 255 - (second >> 24)
        position += 2
        candidate = signed * widths[strip]
        if abs(candidate) >= widths[strip + 1]:
            if strip == 0:
                beyond, position = _tail(words, position)
                candidate = np.copysign(_TAIL + beyond, signed)
            else:
                share = _uniform(np.int64(words[position]), np.int64(words[position + 1]))
                position += 2
                height = heights[strip] + share * (heights[strip + 1] - heights[strip])
                if height >= np.exp(-0.5 * candidate**2):
                    continue
        values[done] = candidate
        done += 1
    return done, position


@njit(cache=True, nogil=True)
def _tail(words, position):
    """Distance beyond the last strip, by Marsaglia's pair of exponentials."""
    while True:
        first = _uniform(np.int64(words[position]), np.int64(words[position + 1]))
        second = _uniform(np.int64(words[position + 2]), np.int64(words[position + 3]))
        position += 4
        beyond = -np.log(first) / _TAIL
        if -2 * np.log(second) > beyond**2:
            return beyond, position
