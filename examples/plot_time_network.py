"""
Reading a noise network: rows in time
=====================================

Sensors read every hour: the signal is a slow daily rhythm, the noise of each hour carries over to
the next. The network among rows should then be a chain, and it is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_low_rank_matrix_normal
from mnpca.plots import NoiseGraphDisplay, WhitenessDisplay

hours, sensors = 120, 200
clock = 2 * np.pi * np.arange(hours) / 24
rhythm = np.column_stack([np.sin(clock), np.cos(clock)])
gain = np.random.RandomState(1000).standard_normal((2, sensors))
data = make_low_rank_matrix_normal(
    hours,
    sensors,
    signal=2 * rhythm @ gain,
    row_precision=chain_precision(hours, 0.6),
    col_precision=np.eye(sensors),
    random_state=1001,
)
X = pd.DataFrame(
    data.Y,
    index=[f"{i // 24 + 1}/{i % 24:02d}h" for i in range(hours)],
    columns=[f"sensor{j}" for j in range(sensors)],
)
model = MNPCA(2, noise="graph", random_state=0).fit(X)

# %%
# How many edges join neighbors in time?
graph = model.noise_graph("rows")
gaps = np.array([abs(first - second) for first, second in graph.edges])
print(f"{len(gaps)} edges among hours; {np.sum(gaps == 1)} join one hour to the next")

# %%
# In the matrix, in the order of time, the chain is a line beside the diagonal.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
NoiseGraphDisplay.from_estimator(model, "rows", labels=X.index).plot(axes[0], kind="matrix")
WhitenessDisplay.from_estimator(model, X).plot(axes[1], kind="rows")

# %%
# What not to conclude: an edge says that two hours deviate together, given all the others. It does
# not say that one caused the other, and a missing edge may only mean too few sensors to see it.
