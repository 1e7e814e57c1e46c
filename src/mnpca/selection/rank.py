"""The number of components, as a number or by the paper's rule."""

from typing import Any

import numpy as np

from mnpca.model.gpca import truncated_svd

# The paper's rule looks at this many components and wants this share of their variance.
CANDIDATES = 10
SHARE = 0.8
FEWEST_FEATURES = 15


def paper_rank(Y: Any) -> int:
    """Rank by the cumulative share of variance, as the MN-PCA paper chooses it for real data.

    The smallest k with ``(s_1^2 + ... + s_k^2) / (s_1^2 + ... + s_K^2) > 0.8``, K = 10, at least
    2; and 2 where there are fewer than 15 features.
    """
    fewest = min(2, *Y.shape)
    if Y.shape[1] < FEWEST_FEATURES:
        return fewest
    K = min(CANDIDATES, *Y.shape)
    variance = truncated_svd(Y, K).singular_values ** 2
    share = np.cumsum(variance) / max(variance.sum(), np.finfo(float).tiny)
    return max(int(np.argmax(share > SHARE)) + 1, fewest)


def choose_rank(n_components: float | str | None, Y: Any) -> int:
    """Return the rank asked for, by number, the paper's rule or None for all, if Y can have it."""
    most = min(Y.shape)
    if n_components is None:
        return most
    if isinstance(n_components, str):
        if n_components != "paper":
            raise ValueError(f'n_components must be a number or "paper", got {n_components!r}.')
        return paper_rank(Y)
    if n_components > most:
        raise ValueError(
            f"n_components={n_components} must not exceed "
            f"min(n_samples={Y.shape[0]}, n_features={Y.shape[1]}) = {most}."
        )
    return int(n_components)
