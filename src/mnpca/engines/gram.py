"""Gram matrices of residuals: from factors, entry by entry as they are asked for, or formed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import Array, astype, indices, like, namespace, sparse_times, to_numpy
from mnpca.engines.base import Gram, Pairs, joined
from mnpca.engines.rows import ArrayRows, Rows, large_in_tile
from mnpca.engines.threads import slices

#: Rows of a formed matrix that a search looks at in one go.
STRIP = 1024
#: Large components whose products are computed at once: they are there twice for a while.
AT_ONCE = 8


class FactorGram(Gram):
    """The symmetric matrix ``left right' + extra`` of q items, kept as its factors.

    These are residuals (rows, or arrays), once filtered by the other side's precision and once not.
    """

    _keys: IntArray
    _values: FloatArray

    def __init__(
        self,
        left: Rows | FloatArray,
        right: Rows | FloatArray,
        extra: sp.csr_array | None = None,
    ):
        self._left, self._right = (
            each if isinstance(each, Rows) else ArrayRows(each) for each in (left, right)
        )
        self.n_rows, self.size = self._left.shape[0], self._right.shape[0]
        self.extra = extra
        self._forget()

    @property
    def left(self) -> Any:
        """Return the first factor, where it is an array."""
        return self._left.matrix

    @property
    def right(self) -> Any:
        """Return the second factor, where it is an array."""
        return self._right.matrix

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FactorGram":
        left = self._left.filtered(mix, rest[:0])
        return FactorGram(left, self._right.filtered(mix, rest), extra)

    def _products(self, i: IntArray, j: IntArray) -> FloatArray:
        if self._left.matrix is not None:
            return self._left.products(self._right, i, j)
        # Rows that are computed whenever they are read: products are computed once.
        keys = i * self.size + j
        new = np.setdiff1d(keys, self._keys)
        if len(new) > 0:
            values = self._left.products(self._right, *np.divmod(new, self.size))
            every = np.concatenate([self._keys, new])
            order = np.argsort(every)
            self._keys = every[order]
            self._values = np.concatenate([self._values, values])[order]
        return np.asarray(self._values[np.searchsorted(self._keys, keys)])

    def _forget(self) -> None:
        self._keys, self._values = np.zeros(0, np.int64), np.zeros(0)

    def _blocks(self, components: list[IntArray]) -> Iterator[FloatArray]:
        pairs = [(items, items) for items in components]
        for some in slices(len(pairs), AT_ONCE):
            yield from self._left.map_pairs(_all_products, None, self._right, pairs[some])

    def _large_products(self, level: float) -> Pairs:
        return self._left.large_products(self._right, level)

    def _rescale(self, weights: FloatArray) -> None:
        self._left, self._right = (each.rescaled(weights) for each in (self._left, self._right))
        self._forget()


class FormedGram(Gram):
    """The leading rows of a symmetric matrix ``gram + extra``, an array (float64) anywhere."""

    def __init__(self, gram: Array, extra: sp.csr_array | None = None):
        self.gram = gram
        self.n_rows, self.size = (int(length) for length in gram.shape)
        self.extra = extra

    @classmethod
    def of(cls, products: Array) -> "FormedGram":
        """Make products symmetric to the last bit."""
        products = astype(products, "float64")
        products = products + products.T
        products *= 0.5
        return cls(products)

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FormedGram":
        xp = namespace(self.gram)
        half = sparse_times(mix, self.gram)
        others = xp.take(half, indices(rest, half), axis=1)
        return FormedGram(xp.concat([sparse_times(mix, half.T).T, others], axis=1), extra)

    def _products(self, i: IntArray, j: IntArray) -> FloatArray:
        if isinstance(self.gram, np.ndarray):
            return np.asarray(self.gram[i, j])
        xp = namespace(self.gram)
        flat = xp.reshape(self.gram, (-1,))
        places = np.asarray(i, np.int64) * self.size + j
        return to_numpy(xp.take(flat, indices(places, flat))).astype(np.float64)

    def _blocks(self, components: list[IntArray]) -> Iterator[FloatArray]:
        xp = namespace(self.gram)
        for items in components:
            where = indices(items, self.gram)
            yield to_numpy(xp.take(xp.take(self.gram, where, axis=0), where, axis=1))

    def _large_products(self, level: float) -> Pairs:
        strips = slices(self.n_rows, STRIP)
        return joined(
            [large_in_tile(self.gram[s, s.start :], s.start, s.start, level) for s in strips]
        )

    def _rescale(self, weights: FloatArray) -> None:
        weight = like(weights, self.gram)
        self.gram *= weight[None, :]
        self.gram *= weight[:, None]


def _all_products(left: Array, right: Array, _: None) -> FloatArray:
    return to_numpy(left @ right.T).astype(np.float64)
