"""The displays draw what they say."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from tests.known import known_fit

from mnpca.plots import (
    ConvergenceDisplay,
    NoiseGraphDisplay,
    ScoresDisplay,
    SelectionDisplay,
    WhitenessDisplay,
    force_layout,
)


@pytest.fixture(scope="module")
def fit():
    return known_fit()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_scores_has_a_point_per_row_and_a_colour_per_label(fit):
    data, frame, model = fit
    display = ScoresDisplay.from_estimator(model, frame, labels=data.labels).plot()
    drawn = [dots.get_offsets() for dots in display.ax_.collections]
    assert len(drawn) == 3
    assert sum(map(len, drawn)) == len(frame)
    scores = model.transform(frame)
    np.testing.assert_allclose(
        np.sort(np.concatenate(drawn)[:, 0]), np.sort(np.asarray(scores)[:, 0])
    )


def test_scores_of_one_component_and_of_none():
    _, frame, model = known_fit(k=1)
    display = ScoresDisplay.from_estimator(model, frame).plot()
    assert display.ax_.get_ylabel() == "position"
    with pytest.raises(ValueError, match="no component"):
        ScoresDisplay(np.empty((5, 0))).plot()


def test_every_display_takes_axes(fit):
    data, frame, model = fit
    figure, axes = plt.subplots(2, 4)
    displays = [
        ScoresDisplay.from_estimator(model, frame, labels=data.labels),
        NoiseGraphDisplay.from_estimator(model, "rows", labels=data.labels),
        NoiseGraphDisplay.from_estimator(model, "columns"),
        WhitenessDisplay.from_estimator(model, frame),
        SelectionDisplay.from_estimator(model, frame),
        ConvergenceDisplay.from_estimator(model),
    ]
    for display, ax in zip(displays, axes.flat, strict=False):
        assert display.plot(ax=ax) is display
        assert display.ax_ is ax
        assert display.figure_ is figure
    figure.canvas.draw()


def test_graph_draws_the_strongest_edges(fit):
    _, _, model = fit
    display = NoiseGraphDisplay.from_estimator(model, "columns").plot(max_edges=5)
    assert display.n_shown_ == 5
    assert len(display.ax_.collections[0].get_segments()) == 5
    assert f"5 strongest of {len(display.edges)}" in display.ax_.get_title()
    matrix = NoiseGraphDisplay.from_estimator(model, "columns").plot(kind="matrix")
    assert len(matrix.ax_.collections[0].get_offsets()) == 2 * len(matrix.edges)
    with pytest.raises(ValueError, match="kind"):
        display.plot(kind="tree")


def test_whiteness_kinds(fit):
    _, frame, model = fit
    display = WhitenessDisplay.from_estimator(model, frame)
    for kind in ("singular values", "rows", "columns"):
        ax = display.plot(kind=kind).ax_
        assert len(ax.patches) > 50
        assert len(ax.lines) == 1
    with pytest.raises(ValueError, match="kind"):
        display.plot(kind="both")


def test_convergence_shows_the_history(fit):
    _, _, model = fit
    ax = ConvergenceDisplay.from_estimator(model).plot().ax_
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.objective_history_)


def test_selection_marks_what_was_kept(fit):
    _, frame, model = fit
    ax = SelectionDisplay.from_estimator(model, frame, count=10).plot().ax_
    assert [len(line.get_xdata()) for line in ax.lines[:3]] == [10, 10, 2]


def test_layout_keeps_joined_nodes_close_and_is_repeatable():
    first, second = [0, 1, 0, 3, 4, 3], [1, 2, 2, 4, 5, 5]
    places = force_layout(first, second, 6)
    assert np.abs(places).max() == pytest.approx(1)
    np.testing.assert_array_equal(places, force_layout(first, second, 6))
    within = np.linalg.norm(places[first] - places[second], axis=1).max()
    between = min(np.linalg.norm(places[i] - places[j]) for i in range(3) for j in range(3, 6))
    assert within < between
    assert force_layout([], [], 1).tolist() == [[0, 0]]
    assert force_layout([], [], 0).shape == (0, 2)
