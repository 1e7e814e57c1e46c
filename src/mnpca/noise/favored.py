"""Which pairs are favored by what their plain correlation says of an edge, beside the test."""

import numpy as np

from mnpca._typing import BoolArray, FloatArray, IntArray
from mnpca.engines.gram import FactorGram, sparse_entries
from mnpca.engines.threads import slices
from mnpca.noise.significance import LARGEST, statistic
from mnpca.noise.support import SupportFit, gain_of_edge, without_edge

#: A pair is favored from this deviate on, which 1 in 740 pairs without an edge reaches by chance.
#: Classes from 2, 3 and 4 on list 1% more edges, but miss their rate where a signal was not found:
#: 6% for 5% in autoregressive columns.
FAVOR = 3.0
#: Two statistics that correlate more than this say the same.
SAME = 0.98
#: Least share of an item's variance that counts as noise; the signal has taken the rest.
SMALLEST_SHARE = 1e-3
#: Favored pairs are counted among about so many, all partners of some items, and so many at a time.
COUNTED = 2**23
AT_ONCE = 2**20


class Favors:
    """Tells which pairs of items are favored.

    With the correlation r of a pair and r' the one that the other edges imply, the signed root of
    the likelihood ratio of the edge, ``y = +-sqrt(m gain(r, r'))`` (as in `SupportFit.edge_gains`),
    is worth more than the test's z where the items have neighbors. But it believes in the other
    edges: one that is missing among them shifts y, and shifts z by its square only.

    Where there is no edge between i and j, y and z correlate with ``c = c_i c_j``, c_i the
    correlation of item i with its own innovation: x of covariance inv P has
    ``cov(x_i x_j, (P x)_i (P x)_j) = 1``, and both variances are products of those of the items
    and of the innovations. So ``u = (y - c z) / sqrt(1 - c^2)`` does not correlate with z, right or
    wrong as r' may be. A pair is favored where u is beyond `FAVOR` on the side of z. Among pairs
    without an edge that says nothing about the size of z; edges mostly have it.
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

    def of(self, i: IntArray, j: IntArray) -> BoolArray:
        """Tell which of the listed pairs are favored."""
        plain, score = self.correlation.entries(i, j), self.scores.entries(i, j)
        return self._favored(i, j, plain, score, sparse_entries(self.precision, i, j))

    def count(self) -> tuple[IntArray, int]:
        """Return favored pairs (as i * q + j), and how many there are.

        Where very many items have edges, they are counted at some of them, and none is returned.
        Pairs without any edge beside them have y = z and are not favored.
        """
        component = self.fit.support.component
        linked, every = np.flatnonzero(component >= 0), np.arange(len(component))
        items = linked
        if len(linked) * len(every) > COUNTED:
            most = -(-COUNTED // len(every))
            items = np.random.default_rng(0).choice(linked, most, replace=False)
        found = [np.zeros(0, np.int64)]
        for part in slices(len(items), max(1, AT_ONCE // len(every))):
            rows = items[part]
            plain, score = self.correlation.dense_rows(rows), self.scores.dense_rows(rows)
            entry = self.precision[rows].toarray()
            favored = self._favored(rows[:, None], every, plain, score, entry)
            # Pairs of two linked items are met twice.
            favored &= (every > rows[:, None]) | (component < 0)
            row, other = np.nonzero(favored)
            item = rows[row]
            found.append(np.minimum(item, other) * len(every) + np.maximum(item, other))
        pairs = np.concatenate(found)
        if len(items) == len(linked):
            return pairs, len(pairs)
        return pairs[:0], len(pairs) * len(linked) // len(items)

    def _favored(
        self, i: IntArray, j: IntArray, plain: FloatArray, score: FloatArray, entry: FloatArray
    ) -> BoolArray:
        """Tell which pairs are favored; i and j broadcast against the others."""
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
        rest = (root - common * z) * np.sign(z)
        return np.asarray((rest >= FAVOR * np.sqrt(1.0 - common**2)) & (common < SAME))
