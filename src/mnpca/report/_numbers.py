"""Numbers short enough to embed."""

import numpy as np


def short(values, digits=4):
    """Return numbers with so many significant digits, as plain lists; NaN becomes None."""
    values = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        place = digits - 1 - np.floor(np.log10(np.abs(values)))
    place = np.where(np.isfinite(place), np.clip(place, -300, 300), 0)
    scale = 10.0**place
    rounded = np.where(values == 0, 0.0, np.round(values * scale) / scale)
    return _plain(rounded)


def _plain(values):
    if values.ndim > 1:
        return [_plain(row) for row in values]
    if values.ndim == 0:
        return float(f"{values:.12g}") if np.isfinite(values) else None
    return [float(f"{v:.12g}") if np.isfinite(v) else None for v in values]
