"""The paper's figures, drawn from stored results. No window, whatever backend pyplot has."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.tables import heading

#: Okabe and Ito's.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def save_scatter(panels, path):
    """Draw projections, one row of panels per data set.

    Parameters
    ----------
    panels : dict
        Lists of (method, scores, labels) by data name.
    path : path
        Picture file.
    """
    n_cols = max(len(row) for row in panels.values())
    figure = Figure(figsize=(3 * n_cols, 3 * len(panels)))
    axes = figure.subplots(len(panels), n_cols, squeeze=False)
    for row_axes, (data, row) in zip(axes, panels.items(), strict=True):
        for axis in row_axes[len(row) :]:
            axis.set_axis_off()
        for axis, (method, scores, labels) in zip(row_axes, row, strict=False):
            _scatter(axis, scores, labels)
            axis.set_title(f"{method}, {data}", fontsize=9)
    _save(figure, path)


def save_swiss(rows, path):
    """Draw rolls in space, then their projections, one row for each arrangement.

    Parameters
    ----------
    rows : dict
        The points and a list of (method, scores, labels) by data name.
    path : path
        Picture file.
    """
    n_cols = 1 + max(len(panels) for _, panels in rows.values())
    figure = Figure(figsize=(3 * n_cols, 3 * len(rows)))
    for row, (data, (points, panels)) in enumerate(rows.items()):
        first = row * n_cols + 1
        axis = figure.add_subplot(len(rows), n_cols, first, projection="3d")
        axis.scatter(*points.T, c=_colors(panels[0][2]), s=6)
        axis.set_title(data, fontsize=9)
        for ticks in (axis.set_xticks, axis.set_yticks, axis.set_zticks):
            ticks([])
        for position, (method, scores, labels) in enumerate(panels, start=first + 1):
            axis = figure.add_subplot(len(rows), n_cols, position)
            _scatter(axis, scores, labels)
            axis.set_title(method, fontsize=9)
    _save(figure, path)


def save_times(by_size, by_penalty, path):
    """Draw seconds against columns and against the logarithm of the column penalty.

    Parameters
    ----------
    by_size, by_penalty : dict
        Lists of (x, seconds) by method.
    path : path
        Picture file.
    """
    figure = Figure(figsize=(9, 3.5))
    left, right = figure.subplots(1, 2)
    for axis, lines, label in (
        (left, by_size, "columns"),
        (right, {m: [(np.log(x), s) for x, s in v] for m, v in by_penalty.items()}, "log alpha"),
    ):
        for method, line in lines.items():
            axis.plot(*np.array(sorted(line)).T, marker="o", label=heading(method))
        axis.set_xlabel(label)
        axis.set_ylabel("seconds")
        axis.set_yscale("log")
        _plain_numbers(axis.yaxis, [seconds for line in lines.values() for _, seconds in line])
        axis.legend(fontsize=7)
    _save(figure, path)


def save_networks(panels, path):
    """Draw row networks with the rows ordered by class.

    Parameters
    ----------
    panels : list
        (method, i, j, labels), the ends of the strongest edges and the class of every row.
    path : path
        Picture file.
    """
    figure = Figure(figsize=(5 * len(panels), 5))
    axes = figure.subplots(1, len(panels), squeeze=False)
    for axis, (method, i, j, labels) in zip(axes[0], panels, strict=True):
        order = np.argsort(labels, kind="stable")
        place = np.empty(len(order), dtype=int)
        place[order] = np.arange(len(order))
        axis.plot(place[i], place[j], ".", markersize=1.5, color="tab:blue")
        axis.plot(place[j], place[i], ".", markersize=1.5, color="tab:blue")
        _class_borders(axis, labels)
        axis.set_title(f"{method}: strongest {len(i)} edges", fontsize=10)
    _save(figure, path)


def _class_borders(axis, labels):
    names, counts = np.unique(labels, return_counts=True)
    ends = np.cumsum(counts)
    for end in ends[:-1]:
        axis.axhline(end, color="black", linewidth=0.5)
        axis.axvline(end, color="black", linewidth=0.5)
    axis.set_xticks(ends - counts / 2, names, rotation=45, fontsize=7)
    axis.set_yticks(ends - counts / 2, names, fontsize=7)
    axis.set_xlim(0, len(labels))
    axis.set_ylim(len(labels), 0)
    axis.set_aspect("equal")


def _plain_numbers(axis, values):
    """Write numbers instead of powers; those between the decades only if there are no others."""
    number = FuncFormatter(lambda value, _: f"{value:g}")
    one_decade = max(values) < 10 * min(values)
    axis.set_major_formatter(number)
    axis.set_minor_formatter(number if one_decade else NullFormatter())


def _colors(labels):
    """Give every group a color that color-blind readers can tell from the others."""
    groups = np.unique(labels, return_inverse=True)[1]
    return np.array(COLORS)[groups % len(COLORS)]


def _scatter(axis, scores, labels):
    axis.scatter(scores[:, 0], scores[:, -1], c=_colors(labels), s=6)
    axis.set_xticks([])
    axis.set_yticks([])


def _save(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=120)
