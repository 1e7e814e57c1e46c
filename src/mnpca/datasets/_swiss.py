"""Two Swiss rolls: groups that a plain projection mixes."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state

from mnpca._typing import RandomState

LENGTH = 21.0
# Of two rolls that share the length, each takes 10 and leaves 1 between them.
HALF, SHIFT = 10.0, 11.0


def make_two_swiss_rolls(
    n_samples: int = 400,
    *,
    arrangement: str = "wound",
    noise: float = 0.05,
    random_state: RandomState = None,
) -> Bunch:
    """Two Swiss rolls in three dimensions.

    A point of the first with roll angle t sits at (t cos t, h, t sin t).

    Parameters
    ----------
    n_samples : int, default=400
        Points in both rolls together.
    arrangement : {"wound", "side"}, default="wound"
        The second roll is the first one turned by pi around its axis, so that the two are wound
        into each other; or it stands beside the first on the same axis, each half as long.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise.
    random_state : int, RandomState instance or None, default=None
        Source of everything random.

    Returns
    -------
    Bunch
        Y (n_samples x 3), signal (without noise), labels, row_precision and col_precision (of
        the white noise; the identity where there is none).
    """
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, got {n_samples}.")
    if arrangement not in ("wound", "side"):
        raise ValueError(f'arrangement must be "wound" or "side", got {arrangement!r}.')
    if noise < 0:
        raise ValueError(f"noise must not be negative, got {noise}.")
    rng = check_random_state(random_state)
    labels = np.arange(n_samples) % 2
    angle = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n_samples))
    height = rng.uniform(size=n_samples)
    if arrangement == "wound":
        turned, height = angle + np.pi * labels, LENGTH * height
    else:
        turned, height = angle, HALF * height + SHIFT * labels
    signal = np.column_stack([angle * np.cos(turned), height, angle * np.sin(turned)])
    white = noise * rng.standard_normal(signal.shape)
    return Bunch(
        Y=signal + white,
        signal=signal,
        labels=labels,
        row_precision=sp.eye_array(n_samples, format="csr"),
        col_precision=sp.eye_array(3, format="csr") / (noise**2 if noise else 1.0),
    )
