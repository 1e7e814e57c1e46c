"""The displays draw what they say."""

from functools import partial

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from tests.known import known_fit

from mnpca import MNPCA
from mnpca.plots import (
    ConvergenceDisplay,
    NoiseGraphDisplay,
    ScoresDisplay,
    SelectionDisplay,
    WhitenessDisplay,
    force_layout,
)
from mnpca.report import collect


@pytest.fixture(scope="module")
def fit():
    return known_fit()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_scores_has_a_point_per_row_and_a_color_per_label(fit):
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


def test_graph_names_labels_and_leaves_items_without_edges_out(fit):
    edges = NoiseGraphDisplay.from_estimator(fit[2], "columns").edges.strongest(4)
    joined = np.unique([edges.first, edges.second])
    names = [f"measurement {j} of a long name with $ {j:03d}" for j in range(40)]
    kinds = np.array(["even", "odd"] * 20)
    display = NoiseGraphDisplay(edges, names, "columns", labels=kinds).plot()
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == sorted(set(kinds[joined]))
    shown = {text.get_text() for text in display.ax_.texts}
    assert shown == {f"{names[j][:14]}…{names[j][-9:]}".replace("$", r"\$") for j in joined}
    matrix = NoiseGraphDisplay(edges, names, "columns").plot(kind="matrix")
    assert matrix.ax_.get_xlim() == (-0.5, len(joined) - 0.5)


def test_whiteness_kinds(fit):
    _, frame, model = fit
    display = WhitenessDisplay.from_estimator(model, frame)
    for kind in ("singular values", "rows", "columns"):
        ax = display.plot(kind=kind).ax_
        assert len(ax.patches) == 2
        for patch in ax.patches:  # densities
            heights, edges, _ = patch.get_data()
            assert heights @ np.diff(edges) == pytest.approx(1)
        assert np.trapezoid(ax.lines[0].get_ydata(), ax.lines[0].get_xdata()) < 1.01
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


def test_gaps_and_covariates_are_not_residual():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) @ rng.normal(size=(1, 25)) + rng.normal(size=(60, 25))
    covariate = rng.normal(size=(60, 1))
    shifted = X + 50 * covariate
    holes = rng.random(X.shape) < 0.05
    simple = partial(MNPCA, 1, noise="diagonal", prior="gaussian")
    cases = (
        (simple().fit(X), X),
        (simple().fit(shifted, row_covariates=covariate), shifted),
        (simple().fit(np.where(holes, np.nan, X)), np.where(holes, np.nan, X)),
    )
    edge = np.sqrt(60) + np.sqrt(25)
    for model, data in cases:
        display = WhitenessDisplay.from_estimator(model, data)
        assert display.after.singular_values[0] == pytest.approx(edge, rel=0.15)
        strength = SelectionDisplay.from_estimator(model, data).scree.generalized
        assert strength[0] > 1.5
        assert strength[1] == pytest.approx(1, abs=0.15)
    with pytest.raises(ValueError, match="missing values"):
        WhitenessDisplay.from_estimator(cases[0][0], cases[2][1])
    with pytest.raises(ValueError, match=r"training matrix, 60 x 25, and is 9 x 25"):
        SelectionDisplay.from_estimator(cases[0][0], X[:9])


def from_torch(X):
    return pytest.importorskip("torch").tensor(X)


def from_dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(20, -1))


@pytest.mark.parametrize("convert", [from_torch, from_dask])
def test_arrays_of_other_libraries(convert):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) @ rng.normal(size=(1, 25)) + rng.normal(size=(60, 25))
    simple = partial(MNPCA, 1, noise="diagonal", prior="gaussian")
    there, here = convert(X), simple().fit(X)
    model = simple().fit(there)
    np.testing.assert_allclose(
        WhitenessDisplay.from_estimator(model, there).after.singular_values,
        WhitenessDisplay.from_estimator(here, X).after.singular_values,
        rtol=1e-3,
    )
    np.testing.assert_allclose(
        SelectionDisplay.from_estimator(model, there).scree.plain,
        SelectionDisplay.from_estimator(here, X).scree.plain,
        rtol=1e-3,
    )
    shown = ScoresDisplay.from_estimator(model, there).plot()
    np.testing.assert_allclose(shown.scores, here.transform(X), rtol=1e-2, atol=1e-2)
    assert collect(model, there)["shape"] == [60, 25]


def test_labels_of_every_kind(fit):
    _, frame, model = fit
    many = [f"group {i % 11}" for i in range(len(frame))]
    dots = ScoresDisplay.from_estimator(model, frame, labels=many).plot().ax_.collections
    looks = {(*d.get_facecolor()[0], d.get_paths()[0].vertices.tobytes()) for d in dots}
    assert len(looks) == 11
    numbers = ScoresDisplay.from_estimator(model, frame, labels=np.arange(len(frame)) / 7).plot()
    assert len(numbers.ax_.collections) == 1
    assert numbers.ax_.get_legend() is None
    some = np.array(["b", np.nan, "a"] * 20, dtype=object)
    legend = ScoresDisplay.from_estimator(model, frame, labels=some).plot().ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "nan"]
    counts = np.array([2, 10, 1] * 20)
    legend = ScoresDisplay.from_estimator(model, frame, labels=counts).plot().ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["1", "2", "10"]
    with pytest.raises(ValueError, match="labels must be 60 values"):
        ScoresDisplay.from_estimator(model, frame, labels=["a"]).plot()
    with pytest.raises(ValueError, match="from 0 to 1"):
        ScoresDisplay.from_estimator(model, frame, components=(0, 2)).plot()


def test_titles_count_edges(fit):
    edges = NoiseGraphDisplay.from_estimator(fit[2], "columns").edges
    for count, title in ((0, "no edges"), (1, "1 edge"), (3, "3 edges")):
        display = NoiseGraphDisplay(edges.strongest(count), [str(j) for j in range(40)], "columns")
        assert display.plot().ax_.get_title() == f"{title} among columns"


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
