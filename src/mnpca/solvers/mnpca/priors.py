"""Which prior the rows of a factor have: families, and the choice among them by prediction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from mnpca._typing import FloatArray, IntArray
from mnpca.solvers.mnpca.mixture import Mixture, best_weights, log_sum
from mnpca.solvers.mnpca.shrinkage import shrink_rows

#: The families, from the simplest on. "gaussian" is N(0, S). "scales" is a mixture of N(0, s S)
#: over a grid of s, zero among them: rows that take no part, rows that are large. "groups" is a
#: mixture of normal distributions with free centers; without spread where rows call for none.
Family: TypeAlias = Literal["gaussian", "scales", "groups"]
#: What a caller may ask for; "mixture" is groups.
PriorChoice: TypeAlias = Literal["auto", "gaussian", "mixture"]

#: Scales of a row relative to the Gaussian prior, from "absent" on. A grid in steps of a half
#: decade loses less than a tenth of a nat per row against a finer one.
SCALES = np.array([0.0, *10.0 ** np.arange(-2.5, 2.25, 0.5)])
#: A row of this scale has next to no part in the signal: less than a fifth of the usual size.
NEGLIGIBLE = 0.04
#: Most rows that a prior is fitted to, and that families are compared on; an even sample of more.
FITTED_ROWS, COMPARED_ROWS = 5000, 1000
#: Parts of the data that are predicted from the rest, and how many times likelier another prior
#: must make them.
FOLDS, ODDS = 5, 20.0
#: Most groups, and the numbers that every parameter of a mixture needs at least.
MOST_GROUPS, NUMBERS_PER_PARAMETER = 8, 3
#: EM steps of a fit, and of one that begins near its end.
STEPS, FEW_STEPS = 50, 10


@dataclass(frozen=True)
class LearnedPrior:
    """A prior of each family with its share: ``sum_f share_f prior_f``."""

    families: tuple[Family, ...]
    shares: FloatArray
    priors: tuple[Mixture, ...]

    @property
    def family(self) -> Family:
        """Return the family with the largest share."""
        return self.families[int(np.argmax(self.shares))]

    @property
    def mixture(self) -> Mixture:
        """Return all parts of all families."""
        return Mixture(
            np.concatenate(
                [w * prior.weights for w, prior in zip(self.shares, self.priors, strict=True)]
            ),
            np.concatenate([prior.centers for prior in self.priors]),
            np.concatenate([prior.values for prior in self.priors]),
            np.concatenate([prior.vectors for prior in self.priors]),
        )

    def parts_of(self, family: Family) -> slice:
        """Return which parts of `mixture` are of a family."""
        at = self.families.index(family)
        start = sum(len(prior.weights) for prior in self.priors[:at])
        return slice(start, start + len(self.priors[at].weights))

    def fitted_again(self, z: FloatArray, d: FloatArray, matrix: FloatArray) -> "LearnedPrior":
        """Return the prior of the same kind for new observations, in new coordinates ``M x``."""
        z, d = _sample(z, d, FITTED_ROWS)
        priors = tuple(
            prior.mapped(matrix).improved(z, d, FEW_STEPS, _floor(d))
            if family == "groups"
            else _FITS[family](z, d)
            for family, prior in zip(self.families, self.priors, strict=True)
        )
        return replace(self, priors=priors)


def learn_prior(
    z: FloatArray, d: FloatArray, only: Literal["groups"] | None = None
) -> LearnedPrior:
    """Return the prior that predicts best, the Gaussian one where none is clearly better.

    Parameters
    ----------
    z : array of shape (n, k)
        Observations of the rows.
    d : array of shape (n,)
        Their precisions: ``z_i ~ N(x_i, I / d_i)``.
    only : {"groups"}, optional
        Take this family, be it better or not.

    Notes
    -----
    Every family is fitted to four fifths of the rows and judged by the likelihood of the last
    fifth, five times. The shares of the families are those that make the rows so predicted
    likeliest (stacking): where two predict about as well, the prior is between them, and rounding
    cannot turn one into the other. A family with less than one row in it goes.
    """
    if len(z) < FOLDS:
        return LearnedPrior(("gaussian",), np.ones(1), (gaussian_prior(z, d),))
    few_z, few_d = _sample(z, d, COMPARED_ROWS)
    z, d = _sample(z, d, FITTED_ROWS)
    predicted: dict[Family, FloatArray] = {
        family: _predicted(family, few_z, few_d) for family in _FITS
    }
    groups, values = _best_groups(few_z, few_d, predicted["gaussian"])
    predicted["groups"] = values
    logs = np.column_stack(list(predicted.values()))
    shares = best_weights(logs)
    shares = np.where(shares * len(few_z) < 1.0, 0.0, shares)
    families = [family for family, share in zip(predicted, shares, strict=True) if share > 0.0]
    shares, logs = shares[shares > 0.0] / shares.sum(), logs[:, shares > 0.0]
    if not _clearly_better(log_sum(logs + np.log(shares)), predicted["gaussian"]):
        families, shares = ["gaussian"], np.ones(1)
    if only is not None:
        families, shares = [only], np.ones(1)
    priors = tuple(
        groups.improved(z, d, STEPS, _floor(d)) if family == "groups" else _FITS[family](z, d)
        for family in families
    )
    return LearnedPrior(tuple(families), shares, priors)


def group_gain(z: FloatArray, d: FloatArray) -> float:
    """Return how much likelier groups make the rows than other families, by prediction, in nats."""
    if len(z) < FOLDS:
        return 0.0
    few_z, few_d = _sample(z, d, COMPARED_ROWS)
    simple = [_predicted(family, few_z, few_d) for family in _FITS]
    _, grouped = _best_groups(few_z, few_d, simple[0])
    gain = float(grouped.sum() - max(values.sum() for values in simple))
    return max(gain, 0.0) * len(z) / len(few_z)


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


_FITS: dict[Family, Callable[[FloatArray, FloatArray], Mixture]] = {
    "gaussian": gaussian_prior,
    "scales": scale_prior,
}


def _best_groups(z: FloatArray, d: FloatArray, to_beat: FloatArray) -> tuple[Mixture, FloatArray]:
    """Return the mixture with most groups that still predicts clearly better than one with fewer.

    With as many groups, with or without spread, the one that predicts better is taken. The groups
    that predict the rows of a fold have been found without them: what has once seen a row does not
    forget it.
    """
    folds = _folds(len(z))
    others = [_growing_mixtures(np.delete(z, rows, axis=0), np.delete(d, rows)) for rows in folds]
    found: list[tuple[Mixture, FloatArray]] = []
    misses = 0
    for mixtures, *without in zip(_growing_mixtures(z, d), *others, strict=False):
        predicted = np.empty((len(mixtures), len(z)))
        for rows, others_there in zip(folds, without, strict=True):
            for number, other in enumerate(others_there):
                predicted[number, rows] = _log_likelihood(other, z, d, rows)
        best = int(np.argmax(predicted.sum(axis=1)))
        found.append((mixtures[best], predicted[best]))
        misses += 1
        if _clearly_better(predicted[best], to_beat):
            to_beat, misses = predicted[best], 0
        if misses > 1:
            break
    return found[max(len(found) - 1 - misses, 0)]


def _growing_mixtures(z: FloatArray, d: FloatArray) -> Iterator[tuple[Mixture, Mixture]]:
    """Yield mixtures of one part, of two, and so on, each with spread in its parts and without."""
    n, k = z.shape
    floor = _floor(d)
    per_part = 1 + k + k * (k + 1) / 2
    most = min(MOST_GROUPS, int(n * k / (NUMBERS_PER_PARAMETER * per_part)))
    mixture = gaussian_prior(z, d).improved(z, d, STEPS, floor)
    for parts in range(1, max(most, 1) + 1):
        yield mixture, mixture.without_spread(floor).improved(z, d, STEPS, floor)
        begun = [mixture.split(part).improved(z, d, FEW_STEPS, floor) for part in range(parts)]
        values = [float(log_sum(each.log_densities(z, d)).sum()) for each in begun]
        mixture = begun[int(np.argmax(values))].improved(z, d, STEPS, floor)
        if len(mixture.weights) <= parts:
            return


def _predicted(family: Family, z: FloatArray, d: FloatArray) -> FloatArray:
    """Return the log likelihood of every row under the prior of the rows in other folds."""
    values = np.empty(len(z))
    for held_out in _folds(len(z)):
        rest = np.delete(np.arange(len(z)), held_out)
        values[held_out] = _log_likelihood(_FITS[family](z[rest], d[rest]), z, d, held_out)
    return values


def _log_likelihood(prior: Mixture, z: FloatArray, d: FloatArray, rows: IntArray) -> FloatArray:
    return log_sum(prior.log_densities(z[rows], d[rows]))


def _clearly_better(values: FloatArray, others: FloatArray) -> bool:
    """Tell whether rows that neither has seen are likelier by the factor `ODDS` under the first.

    Were the second the truth, the mean of that factor would be one. So it exceeds `ODDS` with a
    probability of less than ``1 / ODDS``.
    """
    return bool(np.sum(values - others) > np.log(ODDS))


def _folds(n: int) -> list[IntArray]:
    return [np.arange(fold, n, FOLDS) for fold in range(FOLDS)]


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
