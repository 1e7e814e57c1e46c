"""
Missing values: filling gaps with standard errors
=================================================

Sensors read every hour, noise that carries over from hour to hour, and gaps: single readings, and
an outage of a third of the sensors for a day. The fit takes the gaps as they are.
"""

import matplotlib.pyplot as plt
import numpy as np

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_low_rank_matrix_normal

hours, sensors = 120, 200
clock = 2 * np.pi * np.arange(hours) / 24
rhythm = np.column_stack([np.sin(clock), np.cos(clock)])
gain = np.random.RandomState(1000).standard_normal((2, sensors))
data = make_low_rank_matrix_normal(
    hours,
    sensors,
    signal=2 * rhythm @ gain,
    row_precision=chain_precision(hours, 0.7),
    col_precision=np.eye(sensors),
    random_state=1001,
)
holes = np.random.default_rng(0).random(data.Y.shape) < 0.1
holes[48:72, :60] = True
X = np.where(holes, np.nan, data.Y)

model = MNPCA(2, noise="graph", center=False).fit(X)
filled, std = model.impute(return_std=True)
inside = np.abs(filled - data.Y)[holes] < 1.645 * std[holes]
print(f"{holes.sum()} gaps, {inside.mean():.0%} of the true values inside the 90% intervals")

# %%
# One of the sensors that failed. Outside the outage a gap is filled from the hours beside it, and
# the interval is narrow; in the middle of the outage only the daily rhythm is left.
sensor = 3
gaps = np.flatnonzero(holes[:, sensor])
figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
axis.plot(X[:, sensor], color="0.6", label="observed")
axis.plot(gaps, data.Y[gaps, sensor], ".", color="black", label="hidden value")
axis.errorbar(
    gaps,
    filled[gaps, sensor],
    1.645 * std[gaps, sensor],
    fmt="o",
    markersize=4,
    color="tab:red",
    label="imputed, 90% interval",
)
axis.set(xlabel="hour", ylabel=f"sensor {sensor}")
axis.legend(ncols=3, loc="upper right")

# %%
# Beside column means, and the signal alone, without what the noise of neighboring hours tells.
means = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
guesses = {"column means": means, "signal alone": model.denoise(), "imputed": filled}
for name, guess in guesses.items():
    error = np.sqrt(np.mean((guess - data.Y)[holes] ** 2))
    print(f"{name:>12}: root mean square error {error:.2f}")
