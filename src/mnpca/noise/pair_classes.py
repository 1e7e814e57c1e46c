"""Classes of pairs by what their plain correlation says of an edge, beside the test of the edge."""

import numpy as np

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.gram import FactorGram, sparse_entries
from mnpca.engines.threads import slices
from mnpca.noise.significance import LARGEST, statistic
from mnpca.noise.support import SupportFit, gain_of_edge, without_edge

#: A pair's class is the number of these deviates that its plain correlation reaches. Of the pairs
#: without an edge one in 44, 740 and 31,600 do by chance.
LIMITS = (2.0, 3.0, 4.0)
#: Shares of the classes in the expected errors of a list. Two classes with a limit of 3 missed six
#: times as many of a chain's edges; equal shares list 2% fewer edges where a network has few.
SHARES = (0.4, 0.2, 0.2, 0.2)
#: Pairs from this class on are listed whatever their p-values are.
LISTED_CLASS = 2
#: Two statistics that correlate more than this say the same.
SAME = 0.98
#: Least share of an item's variance that counts as noise; the signal has taken the rest.
SMALLEST_SHARE = 1e-3
#: Classes are counted among all partners of so many items, and so many pairs at a time.
COUNTED_ITEMS = 2000
COUNTED_PAIRS = 2**20


class PairClasses:
    """The classes of the pairs of items.

    With the correlation r of a pair and r' the one that the other edges imply, the signed root of
    the likelihood ratio of the edge, ``y = +-sqrt(m gain(r, r'))`` (as in `SupportFit.edge_gains`),
    is worth more than the test's z where the items have neighbors. But it believes in the other
    edges: one that is missing among them shifts y, and shifts z by its square only.

    Where there is no edge between i and j, y and z correlate with ``c = c_i c_j``, c_i the
    correlation of item i with its own innovation: x of covariance inv P has
    ``cov(x_i x_j, (P x)_i (P x)_j) = 1``, and both variances are products of those of the items
    and of the innovations. So ``u = +-(y - c z) / sqrt(1 - c^2)``, with the sign of z, does not
    correlate with z, right or wrong as r' may be. Among pairs without an edge u says nothing about
    the size of z; edges mostly have a large one. The class tells which `LIMITS` u reaches.
    """

    def __init__(
        self,
        correlation: FactorGram,
        scores: FactorGram,
        fit: SupportFit,
        n_hidden: int,
        n_observations: float,
    ):
        self.correlation, self.scores = correlation, scores
        self.fit, self.precision = fit, fit.precision()
        self.n_observations = n_observations
        # The signal has hidden some of every item's variance, of the innovations' too.
        seen = correlation.right.shape[1] - n_hidden
        items, innovations = correlation.right[:, :seen], scores.right[:, :seen]
        length = np.sqrt(np.einsum("ij,ij->i", items, items, dtype=np.float64))
        self.length = np.maximum(length, np.sqrt(SMALLEST_SHARE))
        likeness = np.einsum("ij,ij->i", items, innovations, dtype=np.float64)
        self.likeness = np.clip(likeness / self.length, 0.0, 1.0)

    def of(self, i: IntArray, j: IntArray) -> IntArray:
        """Return the classes of listed pairs."""
        plain, score = self.correlation.entries(i, j), self.scores.entries(i, j)
        return self._classes(i, j, plain, score, sparse_entries(self.precision, i, j))

    def count(self) -> tuple[IntArray, IntArray]:
        """Return the pairs of the upper classes (as i * q + j), and how many each class has.

        Where very many items have edges, pairs are counted at some of them, and none is returned.
        Without an edge, y is z, and the class 0.
        """
        component = self.fit.support.component
        linked, every = np.flatnonzero(component >= 0), np.arange(len(component))
        items = linked
        if len(linked) > COUNTED_ITEMS:
            items = np.random.default_rng(0).choice(linked, COUNTED_ITEMS, replace=False)
        upper, counts = [np.zeros(0, np.int64)], np.zeros(len(SHARES), np.int64)
        for part in slices(len(items), max(1, COUNTED_PAIRS // len(every))):
            rows = items[part]
            plain, score = self.correlation.dense_rows(rows), self.scores.dense_rows(rows)
            entry = self.precision[rows].toarray()
            classes = self._classes(rows[:, None], every, plain, score, entry)
            # Pairs of two linked items are met twice.
            classes[(every <= rows[:, None]) & (component >= 0)] = 0
            counts += np.bincount(classes.ravel(), minlength=len(counts))
            row, other = np.nonzero(classes >= LISTED_CLASS)
            item = rows[row]
            upper.append(np.minimum(item, other) * len(every) + np.maximum(item, other))
        pairs = np.concatenate(upper)
        if len(items) < len(linked):
            pairs, counts = pairs[:0], counts * len(linked) // len(items)
        counts[0] = len(every) * (len(every) - 1) // 2 - counts[1:].sum()
        return pairs, counts

    def _classes(
        self, i: IntArray, j: IntArray, plain: FloatArray, score: FloatArray, entry: FloatArray
    ) -> IntArray:
        """Return the classes of pairs; i and j broadcast against the others."""
        diagonal, length, likeness = self.fit.diagonal, self.length, self.likeness
        implied = np.clip(self.fit.covariance_of(i, j), -LARGEST, LARGEST)
        implied = without_edge(implied, entry)
        plain = np.clip(plain, -LARGEST, LARGEST)
        gain = self.n_observations * gain_of_edge(plain, implied)
        root = np.sign(plain - implied) * np.sqrt(gain) / (length[i] * length[j])
        # Without the edge an item has a neighbor less and is closer to its innovation.
        known = 1.0 - np.minimum(entry**2 / (diagonal[i] * diagonal[j]), LARGEST)
        common = np.minimum(likeness[i] * likeness[j] / known, 1.0)
        z = statistic(score, self.n_observations)
        rest = (root - common * z) * np.sign(z) / np.sqrt(1.0 - np.minimum(common, SAME) ** 2)
        return np.digitize(np.where(common < SAME, rest, 0.0), LIMITS)


def multiplicity(classes: IntArray, counts: IntArray) -> FloatArray:
    """Return how many tests the p-value of a pair stands for, by its class and their sizes.

    ``p n / s``, n and s the size and share of the class, counts the expected errors of a list that
    has from every class the pairs up to the same count. Empty classes have no share.
    """
    counts = np.maximum(counts, np.bincount(classes, minlength=len(counts)))
    shares = np.where(counts > 0, SHARES, 0.0)
    return np.asarray((counts * shares.sum() / np.maximum(shares, min(SHARES)))[classes])
