"""What the rows of a factor are drawn from: mixtures, their families, the choice by prediction.

Row i is observed as ``z_i = x_i + e_i`` with ``e_i ~ N(0, I / d_i)``, d_i known.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import nnls

from mnpca._typing import BoolArray, FloatArray
from mnpca.solvers.mnpca import _kernels as kernels
from mnpca.solvers.mnpca.variational import shrink_rows

#: The families, from the simplest on. "gaussian" is N(0, S). "scales" is a mixture of N(0, s S)
#: over a grid of s, zero among them: rows that take no part, rows that are large. "groups" is a
#: mixture of normal distributions with free centers, or of points.
Family: TypeAlias = Literal["gaussian", "scales", "groups"]
#: What a caller may ask for; "mixture" is groups.
PriorChoice: TypeAlias = Literal["auto", "gaussian", "mixture"]

#: Scales of a row relative to the Gaussian prior, from "absent" on. A grid in steps of a half
#: decade loses less than a tenth of a nat per row against a finer one.
SCALES = np.array([0.0, *10.0 ** np.arange(-2.5, 2.25, 0.5)])
#: Rows of so small a mean square have next to no part in the signal: a fifth of the usual size.
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
#: Steps for the weights of a mixture's parts, at most; ten are usual.
WEIGHT_STEPS = 50


class Belief(NamedTuple):
    """The posterior of every row of a factor under a prior."""

    mean: FloatArray
    variance: FloatArray
    """Posterior variance of every entry."""
    total: FloatArray
    """``sum_i d_i Cov(x_i)``, k x k."""


@dataclass(frozen=True)
class Mixture:
    """``sum_g weight_g N(center_g, V_g diag(values_g) V_g')``."""

    weights: FloatArray
    centers: FloatArray
    values: FloatArray
    vectors: FloatArray

    @classmethod
    def of(
        cls, weights: FloatArray, centers: FloatArray, covariances: FloatArray, least: float = 0.0
    ) -> "Mixture":
        """Return the mixture with these covariances, no variance less than the least."""
        values, vectors = np.linalg.eigh(covariances)
        return cls(weights, centers, np.maximum(values, least), vectors)

    @property
    def covariances(self) -> FloatArray:
        """Return the covariance of every part."""
        scaled: FloatArray = self.vectors * self.values[:, None]
        return scaled @ self.vectors.transpose(0, 2, 1)

    def log_densities(self, z: FloatArray, d: FloatArray) -> FloatArray:
        """Return ``log(weight_g N(z_i; center_g, S_g + I / d_i))`` without the 2 pi constant."""
        logs = np.empty((len(z), len(self.weights)))
        parts = (np.log(self.weights), self.centers, self.values, self.vectors)
        kernels.part_densities(z, d, *parts, logs)
        return logs

    def shares(self, z: FloatArray, d: FloatArray) -> FloatArray:
        """Return the probability of every part for every row."""
        logs = self.log_densities(z, d)
        return np.asarray(np.exp(logs - log_sum(logs)[:, None]))

    def posterior(self, z: FloatArray, d: FloatArray) -> Belief:
        """Return the posterior of every row.

        Given its part g, row i is off from its mean by ``(I - K) e + (I - K) (c - center_g)``: K is
        the gain ``S_g (S_g + I / d_i)^-1``, and the center that was fitted has the covariance
        ``C_g = (sum_i share_ig (S_g + I / d_i)^-1)^-1``. Centers at zero were not fitted.
        """
        (n, k), noise = z.shape, 1.0 / d[:, None]
        mean, square, total = np.zeros((n, k)), np.zeros((n, k)), np.zeros((k, k))
        parts = zip(self.shares(z, d).T, self.centers, self.values, self.vectors, strict=True)
        for share, center, values, vectors in parts:
            gains = values / (values + noise)
            means = center + (gains * ((z - center) @ vectors)) @ vectors.T
            within = gains * noise
            if np.any(center):
                within += (1.0 - gains) ** 2 / np.maximum(share @ (1.0 / (values + noise)), 1e-300)
            weighted = share[:, None] * means
            mean += weighted
            square += weighted * means + share[:, None] * (within @ (vectors**2).T)
            total += (weighted * d[:, None]).T @ means
            total += (vectors * ((share * d) @ within)) @ vectors.T
        total -= (mean * d[:, None]).T @ mean
        return Belief(mean, np.maximum(square - mean**2, 0.0), total)

    def improved(self, z: FloatArray, d: FloatArray, steps: int) -> "Mixture":
        """Return the mixture after EM steps; parts that hold less than one row go."""
        mixture, before = self, -np.inf
        for _ in range(steps):
            logs = mixture.log_densities(z, d)
            marginal = log_sum(logs)
            likelihood = float(marginal.sum())
            if likelihood - before < 1e-4 * len(z):
                break
            before = likelihood
            mixture = mixture._em_step(z, d, np.exp(logs - marginal[:, None]))
        return mixture

    def _em_step(self, z: FloatArray, d: FloatArray, shares: FloatArray) -> "Mixture":
        """Return the next mixture: weights and centers given the shares, then the spreads."""
        parts, k = self.centers.shape
        counts, shifts, second = np.zeros(parts), np.zeros((parts, k)), np.zeros((parts, k, k))
        own = (self.centers, self.values, self.vectors)
        kernels.part_moments(z, d, shares, *own, counts, shifts, second)
        kept = counts >= min(1.0, counts.max())
        vectors = self.vectors[kept]
        turned = np.matmul(vectors, second[kept] / counts[kept, None, None])
        return Mixture.of(
            counts[kept] / counts[kept].sum(),
            self.centers[kept] + np.einsum("gab,gb->ga", vectors, shifts[kept]),
            np.matmul(turned, vectors.transpose(0, 2, 1)),
            least_variance(d),
        )

    def negligible(self) -> BoolArray:
        """Return the parts whose mean square is next to nothing beside that of all."""
        squares = np.sum(self.centers**2, axis=1) + np.sum(self.values, axis=1)
        return np.asarray(squares <= NEGLIGIBLE * (self.weights @ squares))

    def points(self, d: FloatArray) -> "Mixture":
        """Return the mixture without spread in its parts. EM steps leave it so."""
        return replace(self, values=np.full_like(self.values, least_variance(d)))

    def with_common_spread(self) -> "Mixture":
        """Return the mixture whose parts all have the average spread."""
        average = np.einsum("g,gab->ab", self.weights, self.covariances)
        return Mixture.of(self.weights, self.centers, np.stack([average] * len(self.weights)))

    def mapped(self, matrix: FloatArray) -> "Mixture":
        """Return the distribution of ``M x``."""
        return Mixture.of(
            self.weights, self.centers @ matrix.T, matrix @ self.covariances @ matrix.T
        )

    def split(self, part: int) -> "Mixture":
        """Return the mixture with one part cut in two, along its longest axis."""
        step = self.vectors[part, :, -1] * np.sqrt(self.values[part, -1])
        both = np.append(np.arange(len(self.weights)), part)
        weights, centers, values = self.weights[both], self.centers[both], self.values[both]
        for half, sign in ((part, -1.0), (-1, 1.0)):
            weights[half] /= 2.0
            centers[half] += sign * step
            values[half, -1] *= 0.3
        return Mixture(weights, centers, values, self.vectors[both])


@dataclass(frozen=True)
class LearnedPrior:
    """A prior of each family with its share: ``sum_f share_f prior_f``."""

    shares: dict[Family, float]
    priors: dict[Family, Mixture]

    @property
    def families(self) -> tuple[Family, ...]:
        """Return the families that have a share."""
        return tuple(self.shares)

    @property
    def family(self) -> Family:
        """Return the family with the largest share."""
        return max(self.shares, key=lambda family: self.shares[family])

    @property
    def mixture(self) -> Mixture:
        """Return all parts of all families."""
        fields = [
            (self.shares[family] * prior.weights, prior.centers, prior.values, prior.vectors)
            for family, prior in self.priors.items()
        ]
        return Mixture(*(np.concatenate(field) for field in zip(*fields, strict=True)))

    def fitted_again(self, z: FloatArray, d: FloatArray, matrix: FloatArray) -> "LearnedPrior":
        """Return the prior of the same kind for new observations, in new coordinates ``M x``."""
        z, d = _sample(z, d, FITTED_ROWS)
        priors = {
            family: _fitted(family, z, d, prior.mapped(matrix), FEW_STEPS)
            for family, prior in self.priors.items()
        }
        return replace(self, priors=priors)


def learn_prior(z: FloatArray, d: FloatArray, choice: PriorChoice = "auto") -> LearnedPrior:
    """Return the prior that predicts best, the Gaussian one where none is clearly better.

    Every family is fitted to four fifths of the rows and judged by the likelihood of the last
    fifth, five times. The shares of the families are those that make the rows so predicted
    likeliest (stacking): where two predict about as well, the prior is between them, and rounding
    cannot turn one into the other. A family with less than one row in it goes. "mixture" takes
    groups, be they better or not.
    """
    if len(z) < FOLDS or choice == "gaussian":
        return LearnedPrior({"gaussian": 1.0}, {"gaussian": gaussian_prior(z, d)})
    predicted, groups = _predictions(*_sample(z, d, COMPARED_ROWS))
    logs = np.column_stack(list(predicted.values()))
    weights = best_weights(logs)
    weights = np.where(weights * len(logs) < 1.0, 0.0, weights)
    weights /= weights.sum()
    with np.errstate(divide="ignore"):
        stacked = log_sum(logs + np.log(weights))
    shares: dict[Family, float] = {"gaussian": 1.0}
    if choice == "mixture":
        shares = {"groups": 1.0}
    elif _clearly_better(stacked, predicted["gaussian"]):
        every = zip(predicted, weights, strict=True)
        shares = {family: float(share) for family, share in every if share > 0.0}
    z, d = _sample(z, d, FITTED_ROWS)
    priors = {family: _fitted(family, z, d, groups, STEPS) for family in shares}
    return LearnedPrior(shares, priors)


def _fitted(family: Family, z: FloatArray, d: FloatArray, groups: Mixture, steps: int) -> Mixture:
    """Return the prior of a family by maximum likelihood; groups begin at the given ones."""
    return groups.improved(z, d, steps) if family == "groups" else _FITS[family](z, d)


def group_gain(z: FloatArray, d: FloatArray) -> float:
    """Return how much likelier groups make the rows than other families, by prediction, in nats."""
    if len(z) < FOLDS:
        return 0.0
    few_z, few_d = _sample(z, d, COMPARED_ROWS)
    predicted, _ = _predictions(few_z, few_d)
    grouped = predicted.pop("groups", predicted["gaussian"])
    gain = float(grouped.sum() - max(values.sum() for values in predicted.values()))
    return max(gain, 0.0) * len(z) / len(few_z)


def gaussian_prior(z: FloatArray, d: FloatArray) -> Mixture:
    """Return N(0, S) with S by maximum likelihood."""
    k = z.shape[1]
    moment = (z.T * d) @ z / d.sum() - np.eye(k) * len(d) / d.sum()
    values, vectors = np.linalg.eigh(moment)
    start = (vectors * np.maximum(values, 1e-3 / d.mean())) @ vectors.T
    fitted = shrink_rows(z, 1.0 / d, start, STEPS)
    values = np.maximum(fitted.values, least_variance(d))
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


def _predictions(z: FloatArray, d: FloatArray) -> tuple[dict[Family, FloatArray], Mixture]:
    """Return each row's log likelihood when in a fold held out, by family, and the best groups.

    These are the most that still predict clearly better than fewer; points, unless groups with
    spread predict clearly better. One part is no group. The groups that predict the rows of a fold
    have been found without them: what has once seen a row does not forget it.
    """
    folds = [np.arange(fold, len(z), FOLDS) for fold in range(FOLDS)]
    rest = [(np.delete(z, rows, axis=0), np.delete(d, rows)) for rows in folds]

    def predicted(priors: Iterable[Mixture]) -> FloatArray:
        values = np.empty(len(z))
        for rows, prior in zip(folds, priors, strict=True):
            values[rows] = log_sum(prior.log_densities(z[rows], d[rows]))
        return values

    values = {family: predicted(fit(*part) for part in rest) for family, fit in _FITS.items()}
    groups, by_groups, misses = gaussian_prior(z, d), values["gaussian"], 0
    growing = [_growing_mixtures(*part) for part in [(z, d), *rest]]
    for mixtures in zip(*growing, strict=False):
        points, spread = zip(*mixtures, strict=True)
        found, by_found, by_spread = points[0], predicted(points[1:]), predicted(spread[1:])
        if _clearly_better(by_spread, by_found):
            found, by_found = spread[0], by_spread
        misses += len(found.weights) > 1
        if _clearly_better(by_found, by_groups):
            groups, by_groups, misses = found, by_found, 0
        if misses > 1:
            break
    if len(groups.weights) > 1:
        values["groups"] = by_groups
    return values, groups


def _growing_mixtures(z: FloatArray, d: FloatArray) -> Iterator[tuple[Mixture, Mixture]]:
    """Yield mixtures of one part, of two, and so on, each of points and with spread."""
    n, k = z.shape
    per_part = 1 + k + k * (k + 1) / 2
    most = min(MOST_GROUPS, int(n * k / (NUMBERS_PER_PARAMETER * per_part)))
    mixture = gaussian_prior(z, d).improved(z, d, STEPS)
    for parts in range(1, max(most, 1) + 1):
        yield mixture.points(d).improved(z, d, STEPS), mixture
        begun = [mixture.split(part).improved(z, d, FEW_STEPS) for part in range(parts)]
        values = [float(log_sum(each.log_densities(z, d)).sum()) for each in begun]
        mixture = begun[int(np.argmax(values))].improved(z, d, STEPS)
        if len(mixture.weights) <= parts:
            return


def _clearly_better(values: FloatArray, others: FloatArray) -> bool:
    """Tell whether rows that neither has seen are likelier by the factor `ODDS` under the first.

    Were the second the truth, the mean of that factor would be one. So it exceeds `ODDS` with a
    probability of less than ``1 / ODDS``.
    """
    return bool(np.sum(values - others) > np.log(ODDS))


def _sample(z: FloatArray, d: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Return an even sample of at most so many rows, in the order of their length.

    So the result does not depend on the order of the rows, and folds have rows of all lengths.
    """
    order = np.argsort(np.einsum("ij,ij->i", z, z), kind="stable")
    order = order[:: max(1, -(-len(z) // most))]
    return z[order], d[order]


def least_variance(d: FloatArray) -> float:
    """Return the least variance of a prior: a ten-thousandth of the observations' own."""
    return float(1e-4 / d.mean())


def best_weights(log_densities: FloatArray) -> FloatArray:
    """Return the weights of a mixture's parts that make the rows likeliest.

    Sequential quadratic programming: with ``R_ig`` the density of row i under part g over that
    under the mixture, ``-sum_i log(sum_g R_ig w_g) / n + sum_g w_g`` is about
    ``|R w - 2|^2 / 2n + sum_g w_g``, whose minimum over ``w >= 0`` is the next step.
    """
    likelihoods = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    n, parts = likelihoods.shape
    weights: FloatArray = np.full(parts, 1.0 / parts)
    marginal = likelihoods @ weights
    for _ in range(WEIGHT_STEPS):
        ratios = likelihoods / marginal[:, None]
        curvature = ratios.T @ ratios / n
        root = np.linalg.cholesky(curvature + 1e-9 * np.trace(curvature) * np.eye(parts))
        goal, _ = nnls(root.T, np.linalg.solve(root, 2.0 * ratios.mean(axis=0) - 1.0))
        goal /= goal.sum()
        # A full step could take the only part away that a row has.
        step, before = 0.95, float(np.log(marginal).sum())
        while step > 1e-3:
            tried = weights + step * (goal - weights)
            marginal_there = likelihoods @ tried
            gain = float(np.log(marginal_there).sum()) - before
            if gain > 0.0:
                weights, marginal = tried, marginal_there
                break
            step /= 2.0
        if gain < 1e-4:
            break
    return weights


def log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials of every row."""
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))
