"""Which prior the rows of a factor have: families, and the choice among them by prediction."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from mnpca._typing import FloatArray, IntArray
from mnpca.solvers.mnpca.mixture import Mixture, Points, Prior, best_weights, log_sum
from mnpca.solvers.mnpca.shrinkage import shrink_rows

#: The families, from the simplest on. "gaussian" is N(0, S). "scales" is a mixture of N(0, s S)
#: over a grid of s, zero among them: rows that take no part, rows that are large. "groups" is a
#: mixture of normal distributions with free centers. "points" is discrete and otherwise free.
Family: TypeAlias = Literal["gaussian", "scales", "groups", "points"]
SIMPLE: tuple[Family, ...] = ("gaussian", "scales")
#: What a caller may ask for; "mixture" is groups.
PriorChoice: TypeAlias = Literal["auto", "gaussian", "mixture"]

#: Scales of a row relative to the Gaussian prior, from "absent" on. A grid in steps of a half
#: decade loses less than a tenth of a nat per row against a finer one.
SCALES = np.array([0.0, *10.0 ** np.arange(-2.5, 2.25, 0.5)])
#: A row of this scale has next to no part in the signal: less than a fifth of the usual size.
NEGLIGIBLE = 0.04
#: Most rows that a prior is fitted to, and that families are compared on; an even sample of more.
FITTED_ROWS, COMPARED_ROWS = 5000, 1000
#: Parts of the data that are predicted from the rest.
FOLDS = 5
#: Most groups, and the rows that every parameter of a mixture needs at least.
MOST_GROUPS, ROWS_PER_PARAMETER = 8, 3
#: Most atoms of a discrete prior.
MOST_ATOMS = 300
#: EM steps of a fit, and of one that begins near its end.
STEPS, FEW_STEPS = 50, 10


class LearnedPrior(NamedTuple):
    """A prior with the family it is of."""

    family: Family
    prior: Prior

    def fitted_again(self, z: FloatArray, d: FloatArray, matrix: FloatArray) -> "LearnedPrior":
        """Return the prior of the same kind for new observations, in new coordinates ``M x``."""
        z, d = _sample(z, d, FITTED_ROWS)
        if self.family == "groups":
            assert isinstance(self.prior, Mixture)
            near = self.prior.mapped(matrix)
            return LearnedPrior("groups", near.improved(z, d, FEW_STEPS, _floor(d)))
        return LearnedPrior(self.family, _FITS[self.family](z, d))


def learn_prior(
    z: FloatArray, d: FloatArray, only: Literal["gaussian", "groups"] | None = None
) -> LearnedPrior:
    """Return the prior that predicts best, and the Gaussian one where none is clearly better.

    Parameters
    ----------
    z : array of shape (n, k)
        Observations of the rows.
    d : array of shape (n,)
        Their precisions: ``z_i ~ N(x_i, I / d_i)``.
    only : {"gaussian", "groups"}, optional
        Take this family instead of choosing one.

    Notes
    -----
    Every family is fitted to four fifths of the rows and judged by the likelihood of the last
    fifth, five times. They are tried in the order of their freedom: Gaussian, scales, two groups,
    three, and so on, points. One takes the place of the best so far if it gains more than the
    standard error of the gain.
    """
    few_z, few_d = _sample(z, d, COMPARED_ROWS)
    z, d = _sample(z, d, FITTED_ROWS)
    best = LearnedPrior("gaussian", gaussian_prior(z, d))
    if only == "gaussian":
        return best
    best_values = _predicted("gaussian", few_z, few_d)
    if only is None:
        values = _predicted("scales", few_z, few_d)
        if _clearly_better(values, best_values):
            best, best_values = LearnedPrior("scales", scale_prior(z, d)), values
    groups, misses = None, 0
    for mixture in _growing_mixtures(few_z, few_d):
        values = _predicted_by_groups(mixture, few_z, few_d)
        misses += 1
        if _clearly_better(values, best_values) or (only and groups is None):
            groups, best_values, misses = mixture, values, 0
        if misses > 1:
            break
    if groups is not None:
        groups, best_values = _fewest_groups(groups, best_values, few_z, few_d)
        best = LearnedPrior("groups", groups.improved(z, d, STEPS, _floor(d)))
    if only is None:
        values = _predicted("points", few_z, few_d)
        if _clearly_better(values, best_values):
            best = LearnedPrior("points", discrete_prior(z, d))
    return best


def group_gain(z: FloatArray, d: FloatArray) -> float:
    """Return how much likelier groups make the rows than other families, by prediction, in nats."""
    few_z, few_d = _sample(z, d, COMPARED_ROWS)
    best = others = -np.inf
    misses = 0
    for mixture in _growing_mixtures(few_z, few_d):
        if others == -np.inf:
            best = others = max(float(_predicted(family, few_z, few_d).sum()) for family in SIMPLE)
        value = float(_predicted_by_groups(mixture, few_z, few_d).sum())
        misses = 0 if value > best else misses + 1
        best = max(best, value)
        if misses > 1:
            break
    return (best - others) * len(z) / len(few_z) if best > others else 0.0


def gaussian_prior(z: FloatArray, d: FloatArray) -> Mixture:
    """Return N(0, S) with S by maximum likelihood."""
    k = z.shape[1]
    moment = (z.T * d) @ z / d.sum() - np.eye(k) * len(d) / d.sum()
    values, vectors = np.linalg.eigh(moment)
    start = (vectors * np.maximum(values, 1e-3 / d.mean())) @ vectors.T
    fitted = shrink_rows(z, 1.0 / d, start, STEPS)
    values = np.maximum(fitted.values, _floor(d))
    return Mixture(np.ones(1), np.zeros((1, k)), values[None], fitted.vectors[None])


def scale_prior(z: FloatArray, d: FloatArray) -> Mixture:
    """Return ``sum_c w_c N(0, s_c S)``: S of the Gaussian prior, w by maximum likelihood."""
    base, count = gaussian_prior(z, d), len(SCALES)
    values = np.maximum(SCALES[:, None] * base.values, 1e-12)
    vectors = np.repeat(base.vectors, count, axis=0)
    equal = Mixture(np.full(count, 1.0 / count), np.zeros((count, z.shape[1])), values, vectors)
    weights = np.maximum(best_weights(equal.log_densities(z, d)), 1e-12)
    return replace(equal, weights=weights / weights.sum())


def discrete_prior(z: FloatArray, d: FloatArray) -> Points:
    """Return the discrete prior on the observations themselves, weights by maximum likelihood."""
    atoms, _ = _sample(z, d, MOST_ATOMS)
    equal = Points(np.full(len(atoms), 1.0 / len(atoms)), atoms)
    weights = best_weights(equal.log_densities(z, d))
    kept = weights > 1e-2 / len(z)
    return Points(weights[kept] / weights[kept].sum(), atoms[kept])


_FITS: dict[Family, Callable[[FloatArray, FloatArray], Prior]] = {
    "gaussian": gaussian_prior,
    "scales": scale_prior,
    "points": discrete_prior,
}


def _growing_mixtures(z: FloatArray, d: FloatArray) -> Iterator[Mixture]:
    """Yield mixtures of two parts, of three, and so on, each from the one before."""
    n, k = z.shape
    per_part = 1 + k + k * (k + 1) / 2
    most = min(MOST_GROUPS, int(n / (ROWS_PER_PARAMETER * per_part)))
    mixture = gaussian_prior(z, d)
    for parts in range(2, most + 1):
        mixture = _likeliest([mixture.split(part) for part in range(parts - 1)], z, d)
        if len(mixture.weights) < parts:
            return
        yield mixture


def _likeliest(starts: list[Mixture], z: FloatArray, d: FloatArray) -> Mixture:
    """Return the mixture that EM finds from the most promising start."""
    begun = [start.improved(z, d, FEW_STEPS, _floor(d)) for start in starts]
    values = [float(log_sum(each.log_densities(z, d)).sum()) for each in begun]
    return begun[int(np.argmax(values))].improved(z, d, STEPS, _floor(d))


def _fewest_groups(
    mixture: Mixture, values: FloatArray, z: FloatArray, d: FloatArray
) -> tuple[Mixture, FloatArray]:
    """Take parts away as long as more of them are not clearly better."""
    while len(mixture.weights) > 2:
        parts = range(len(mixture.weights))
        fewer = _likeliest([mixture.without(part) for part in parts], z, d)
        predicted = _predicted_by_groups(fewer, z, d)
        if _clearly_better(values, predicted):
            break
        mixture, values = fewer, predicted
    return mixture, values


def _predicted(family: Family, z: FloatArray, d: FloatArray) -> FloatArray:
    """Return the log likelihood of every row under the prior of the rows in other folds."""
    values = np.empty(len(z))
    for held_out in _folds(len(z)):
        rest = np.delete(np.arange(len(z)), held_out)
        values[held_out] = _log_likelihood(_FITS[family](z[rest], d[rest]), z, d, held_out)
    return values


def _predicted_by_groups(mixture: Mixture, z: FloatArray, d: FloatArray) -> FloatArray:
    """Return the same for a mixture that was fitted to all rows and forgets each fold in turn."""
    values = np.empty(len(z))
    for held_out in _folds(len(z)):
        rest = np.delete(np.arange(len(z)), held_out)
        forgetful = mixture.improved(z[rest], d[rest], FEW_STEPS, _floor(d))
        values[held_out] = _log_likelihood(forgetful, z, d, held_out)
    return values


def _log_likelihood(prior: Prior, z: FloatArray, d: FloatArray, rows: IntArray) -> FloatArray:
    return log_sum(prior.log_densities(z[rows], d[rows]))


def _clearly_better(values: FloatArray, others: FloatArray) -> bool:
    """Tell whether one prediction is better than another by more than the standard error of it."""
    gains = values - others
    return bool(gains.sum() > gains.std() * np.sqrt(len(gains)))


def _folds(n: int) -> list[IntArray]:
    return [np.arange(fold, n, FOLDS) for fold in range(min(FOLDS, n))]


def _sample(z: FloatArray, d: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Return an even sample of at most so many rows, in the order of their length.

    So the result does not depend on the order of the rows, and folds have rows of all lengths.
    """
    order = np.argsort(np.einsum("ij,ij->i", z, z), kind="stable")
    order = order[:: max(1, -(-len(z) // most))]
    return z[order], d[order]


def _floor(d: FloatArray) -> float:
    """Return the least variance of a prior: a ten-thousandth of the observations' own."""
    return float(1e-4 / d.mean())
