"""What predictions of missing cells are compared with.

SVD imputation is hard (truncated) or soft (shrunken); kind and rank or shrinkage are those with
the smallest error on a tenth of the observed cells. At a fixed rank nothing is tuned.
"""

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - makes the next one known
from sklearn.impute import IterativeImputer, KNNImputer

RANKS = range(9)
#: Of SVD imputation that is not tuned.
FIXED_RANK = 3


def rms(difference):
    return float(np.sqrt(np.mean(difference**2)))


def svd_fill(observed, shrink, iterations=60, tol=1e-3):
    """Alternate a (shrunken or truncated) SVD of the centered matrix and filling by it."""
    missing = np.isnan(observed)
    fitted = np.broadcast_to(np.nanmean(observed, axis=0), observed.shape)
    for _ in range(iterations):
        filled = np.where(missing, fitted, observed)
        mean = filled.mean(axis=0)
        left, values, right = np.linalg.svd(filled - mean, full_matrices=False)
        new = mean + (left * shrink(values)) @ right
        moved = np.linalg.norm(new - fitted) <= tol * np.linalg.norm(new)
        fitted = new
        if moved:
            break
    return np.where(missing, fitted, observed)


def truncation(rank):
    return lambda values: np.where(np.arange(len(values)) < rank, values, 0.0)


def candidates(observed):
    """Yield truncations and shrinkages to choose from."""
    yield from map(truncation, RANKS)
    start = np.where(np.isnan(observed), np.nanmean(observed, axis=0), observed)
    largest = np.linalg.svd(start - start.mean(axis=0), compute_uv=False)[0]
    for share in np.geomspace(0.03, 0.8, 9):
        yield lambda values, level=share * largest: np.maximum(values - level, 0.0)


def tuned(observed, seed, fill, options):
    """Fill with the option that predicts a tenth of the observed cells best."""
    known = np.argwhere(~np.isnan(observed))
    chosen = np.random.default_rng(seed).random(len(known)) < 0.1
    inside = observed.copy()
    inside[tuple(known[chosen].T)] = np.nan
    inside[np.isnan(inside).all(axis=1)] = observed[np.isnan(inside).all(axis=1)]
    test = np.isnan(inside) & ~np.isnan(observed)
    errors = [rms((fill(inside, option) - observed)[test]) for option in options]
    return fill(observed, options[int(np.argmin(errors))])


def svd_impute(observed, seed):
    return tuned(observed, seed, svd_fill, list(candidates(observed)))


def fills(observed, seed):
    """Return the completed matrix by the name of what completed it."""
    filled = {
        "svd": svd_impute(observed, seed),
        f"svd rank {FIXED_RANK}": svd_fill(observed, truncation(FIXED_RANK)),
        "means": np.where(np.isnan(observed), np.nanmean(observed, axis=0), observed),
        "knn": KNNImputer().fit_transform(observed),
    }
    if observed.shape[1] <= 100:  # beyond, scikit-learn's regressions take minutes
        filled["iterative"] = IterativeImputer(random_state=0).fit_transform(observed)
    return filled
