"""Hidden cells: which, and who predicts them better."""

import numpy as np
import pytest

from mnpca.model.effects import Covariates
from mnpca.selection.incomplete import (
    ENOUGH_CELLS,
    PARTS,
    Candidate,
    hidden_parts,
    predict_hidden,
)
from mnpca.solvers.missing import Incomplete, first_fit
from mnpca.solvers.missing.rounds import MissingRounds
from mnpca.solvers.progress import silent


def chains(n=120, p=10, seed=0):
    """Return columns that are steps of random walks, some cells missing."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((n, p)).cumsum(axis=1)
    missing = rng.random(matrix.shape) < 0.1
    covariates = Covariates(np.zeros((n, 0)), np.zeros((p, 0)), True)
    return Incomplete(np.where(missing, 0.0, matrix), missing, covariates), matrix


def candidate(problem, structure, rank=0):
    start = first_fit(problem, rank, True, 0)
    rounds = MissingRounds(problem, *start, (structure, structure), True, 0)
    return Candidate(rounds, rounds.run(silent, dict, None))


def test_parts_are_observed_cells_without_overlap():
    missing = np.random.default_rng(0).random((60, 40)) < 0.2
    parts = hidden_parts(missing, 0)
    assert np.max(np.sum(parts, axis=0)) == 1
    assert not np.any(missing & np.any(parts, axis=0))
    assert all(abs(part.sum() - (~missing).sum() / PARTS) <= 1 for part in parts)
    assert sum(part.sum() for part in parts[:-1]) < ENOUGH_CELLS
    assert len(hidden_parts(np.zeros((200, 100), bool), 0)) == 1


def test_no_part_takes_all_that_a_row_or_column_has():
    missing = np.ones((30, 30), bool)
    np.fill_diagonal(missing, False)
    assert not np.any(hidden_parts(missing, 0))
    missing[0] = False
    for part in hidden_parts(missing, 0):
        left = ~(missing | part)
        assert left.any(axis=0).all()
        assert left.any(axis=1).all()


def test_networks_predict_chains_better():
    problem, _ = chains()
    candidates = [candidate(problem, "graph"), candidate(problem, "diagonal")]
    graph, diagonal = predict_hidden(problem, candidates, hidden_parts(problem.missing, 0))
    assert (graph["noise"], graph["n_components"]) == (("graph", "graph"), 0)
    assert graph["error"] < 0.8 * diagonal["error"]
    # Without components and networks the prediction is the mean, whose error is the unit.
    assert diagonal["error"] == pytest.approx(1.0, abs=0.1)


def test_errors_do_not_depend_on_the_unit_of_the_matrix():
    problem, matrix = chains()
    units = np.logspace(-2, 2, matrix.shape[1])
    (one,), (other,) = (
        predict_hidden(each, [candidate(each, "graph")], hidden_parts(each.missing, 0))
        for each in (
            Incomplete(problem.matrix * unit, problem.missing, problem.covariates)
            for unit in (units, 1e7 * units)
        )
    )
    assert one["error"] == pytest.approx(other["error"], rel=1e-4)


def test_what_is_hidden_does_not_reach_the_prediction():
    """A value that is hidden may be anything once the fit to all has forgotten it."""
    problem, _ = chains()
    hidden = hidden_parts(problem.missing, 0)[0]
    known = candidate(problem, "graph")
    without = Incomplete(
        np.where(hidden, 0.0, problem.matrix), problem.missing | hidden, problem.covariates
    )
    ignorant = candidate(without, "graph")
    before = known.rounds.predictions(known.completed, hidden)
    after = ignorant.rounds.predictions(ignorant.completed, hidden)
    truth = problem.matrix[hidden]
    assert np.std(before - after) < 0.3 * np.std(before - truth)
    assert np.std(before - truth) > 0.9 * np.std(after - truth)
