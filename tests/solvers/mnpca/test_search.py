"""The search: what it finds where signal and noise can be mistaken for each other."""

import numpy as np
import pytest

from mnpca.datasets import chain_precision, make_low_rank_matrix_normal
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, structure_of
from mnpca.solvers.mnpca import fit_mnpca
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.search import Search
from mnpca.solvers.mnpca.settings import UNEQUAL, Settings
from mnpca.solvers.progress import silent


def structures(fit):
    return structure_of(fit.row_noise), structure_of(fit.col_noise)


def add_signal(noise, rank, rows=1.0, cols=1.0, seed=0):
    """Add components of twice to three times the noise edge on a share of rows and columns."""
    rng = np.random.default_rng(seed)
    n, p = noise.shape
    left, right = rng.standard_normal((n, rank)), rng.standard_normal((p, rank))
    left[int(rows * n) :] = right[int(cols * p) :] = 0.0
    left, right = np.linalg.qr(left)[0], np.linalg.qr(right)[0]
    strengths = np.linspace(3, 2, rank) * noise.std() * (np.sqrt(n) + np.sqrt(p))
    return noise + (left * strengths) @ right.T


def white(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_white_noise_is_called_so():
    fit = fit_mnpca(add_signal(white((150, 100)), 2))
    assert len(fit.singular_values) == 2
    assert structures(fit) == ("identity", "identity")


def test_no_signal_is_called_so():
    fit = fit_mnpca(white((150, 100)))
    assert len(fit.singular_values) == 0


def test_a_chain_among_columns_is_no_signal():
    root = np.linalg.cholesky(np.linalg.inv(chain_precision(80, 0.7).toarray()))
    fit = fit_mnpca(add_signal(white((200, 80)) @ root.T, 3))
    assert len(fit.singular_values) == 3
    assert structures(fit)[1] == "graph"
    assert fit.row_noise.n_edges <= 4
    assert fit.comparisons[1]["diagonal"] > 1000


@pytest.mark.parametrize(("rows", "cols"), [(0.1, 1.0), (1.0, 0.1)])
def test_a_signal_on_few_rows_or_columns_survives(rows, cols):
    fit = fit_mnpca(add_signal(white((200, 150)), 2, rows, cols))
    assert len(fit.singular_values) == 2


def test_many_components_are_found():
    fit = fit_mnpca(add_signal(white((200, 150)), 14))
    assert len(fit.singular_values) == 14


def test_unequal_variances_are_told_from_equal_ones():
    spread = np.exp(0.5 * np.random.default_rng(3).standard_normal(100))
    fit = fit_mnpca(add_signal(white((150, 100)) * spread, 2))
    assert structures(fit) == ("identity", "diagonal")
    assert fit.comparisons[1]["identity"] > 100


def test_a_side_has_the_structure_that_is_asked_for():
    data = make_low_rank_matrix_normal(120, 80, 2, condition=64, density=0.03, random_state=4)
    fit = fit_mnpca(data.Y, noise=("diagonal", "graph"))
    assert fit.row_noise.is_diagonal
    assert fit.col_noise.n_edges > 0
    assert fit.comparisons == ({}, {})


def test_errors_of_the_noise_of_a_sample_do_not_become_components():
    """The noise edge of all rows is sharper than what a part of them tells of the noise."""
    n, p = 20_000, 20
    engine = DenseEngine(add_signal(white((n, p)), 1))
    variances = 1.0 + 0.1 * np.random.default_rng(1).standard_normal(p)
    row, col = (AxisPrecision.diagonal(each) for each in (np.ones(n), 1.0 / variances))
    assert low_rank_step(engine, row, col, None).rank > 3
    settings = Settings(None, "auto", "auto", False, 9, 1e-2, 0)
    search = Search.go_on(engine, settings, UNEQUAL, NoiseModel(row, col), 3)
    assert len(search.run(silent).posterior.svd.singular_values) == 1


def test_the_winner_has_the_highest_evidence_of_all_ends():
    data = make_low_rank_matrix_normal(120, 80, 2, condition=64, density=0.03, random_state=5)
    fit = fit_mnpca(data.Y)
    ends = {end.name: end.evidence for end in fit.candidates}
    assert ends[fit.chosen] == max(ends.values())
    assert dict(fit.rank_path)[len(fit.singular_values)] == pytest.approx(
        max(value for _, value in fit.rank_path)
    )
