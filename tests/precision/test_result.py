"""A result made by hand, so that every number in it is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mnpca.precision.blocks import Block, Blocks
from mnpca.precision.iterate import Iterate, cold_start, from_precision, to_precision
from mnpca.precision.problem import Problem
from mnpca.precision.result import PrecisionResult, inverse, log_determinant

# Variables 0 and 3, 2 and 4 and 5 belong together, 1 stands alone.
PAIR = np.array([[2.0, 0.5], [0.5, 1.0]])
THREE = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])


def by_hand(logdets=(np.nan, np.nan), value=np.nan):
    T = np.zeros((6, 6))
    T[1, 1] = 5.0
    T[np.ix_([0, 3], [0, 3])] = PAIR
    T[np.ix_([2, 4, 5], [2, 4, 5])] = THREE
    parts = [
        Block(np.array([0, 3]), np.linalg.inv(PAIR), logdets[0]),
        Block(np.array([2, 4, 5]), np.linalg.inv(THREE), logdets[1]),
    ]
    blocks = Blocks.from_list(parts, 6)
    labels = np.array([0, 1, 2, 0, 2, 2])
    return T, PrecisionResult(sparse.csr_array(T), value, 1e-5, 7, labels, blocks, 11.0)


def test_the_value_is_put_together_when_it_is_asked_for():
    T, result = by_hand()
    assert_allclose(result.objective, 11.0 - np.linalg.slogdet(T)[1])
    # What is known is not computed again.
    _, result = by_hand((100.0, np.nan))
    assert_allclose(result.objective, 11.0 - 100.0 - np.log(5) - np.linalg.slogdet(THREE)[1])
    assert by_hand(value=3.0)[1].objective == 3.0


def test_who_belongs_to_whom():
    T, result = by_hand()
    assert_array_equal(result._blocks.groups.number, [0, -1, 1, 0, 1, 1])
    assert_array_equal(result._blocks.groups.place[[0, 3, 2, 4, 5]], [0, 1, 0, 1, 2])
    assert [part.tolist() for part in result.components] == [[0, 3], [1], [2, 4, 5]]
    assert_allclose(result.covariance, np.linalg.inv(T), atol=1e-14)


def test_state_holds_everything():
    _, result = by_hand((1.5, np.nan))
    state = result.state()
    again = PrecisionResult.from_state(state)
    assert state["objective"] == again.objective == result.objective
    assert again.duality_gap == 1e-5
    assert again.n_iter == 7
    assert_array_equal(again.labels, result.labels)
    assert (again.precision != result.precision).nnz == 0
    for one, other in zip(again._blocks, result._blocks, strict=True):
        assert_array_equal(one.index, other.index)
        assert_array_equal(one.working_covariance, other.working_covariance)
        assert_array_equal(one.logdet, other.logdet)
    assert "blocks" in state


@pytest.mark.parametrize(
    "block",
    [
        (np.array([0, 6]), np.eye(2)),
        (np.array([-1, 3]), np.eye(2)),
        (np.array([0, 3]), np.eye(3)),
        (np.array([0, 3]), np.ones(2)),
        (np.array([3, 0]), np.eye(2)),
        (np.array([3, 3]), np.eye(2)),
        (np.array([3]), np.eye(1)),
        (np.zeros(0, np.int64), np.zeros((0, 0))),
    ],
)
def test_a_damaged_state_is_refused(block):
    """Compiled code would read beyond the arrays."""
    _, result = by_hand()
    state = result.state()
    state["blocks"] = [(*block, 0.0)]
    with pytest.raises(ValueError, match="damaged"):
        PrecisionResult.from_state(state)
    state = result.state() | {"labels": np.zeros(5, np.int64)}
    with pytest.raises(ValueError, match="sizes do not agree"):
        PrecisionResult.from_state(state)


def test_blocks_may_not_overlap():
    _, result = by_hand()
    state = result.state()
    state["blocks"][1] = (np.array([0, 4, 5]), *state["blocks"][1][1:])
    with pytest.raises(ValueError, match="components overlap"):
        PrecisionResult.from_state(state)


def test_blocks_of_earlier_versions_have_one_entry_more():
    _, result = by_hand((1.5, 2.5))
    state = result.state()
    state["blocks"] = [(*block, True) for block in state["blocks"]]
    again = PrecisionResult.from_state(state)
    assert [block.logdet for block in again._blocks] == [1.5, 2.5]


def test_a_precision_that_lives_elsewhere():
    strict = pytest.importorskip("array_api_strict")
    result = PrecisionResult(strict.asarray(THREE.copy()), 1.0, 0.0, 1, np.zeros(3, np.int64))
    assert len(result._blocks) == 0
    assert_allclose(np.asarray(result.covariance), np.linalg.inv(THREE))
    stored = result.state()["precision"]
    assert type(stored) is np.ndarray
    assert_array_equal(stored, THREE)


def test_factors_read_the_lower_triangle_alone():
    lower = np.tril(THREE) + np.triu(np.full((3, 3), np.nan), 1)
    assert_allclose(log_determinant(lower.copy()), np.linalg.slogdet(THREE)[1])
    assert_allclose(inverse(lower.copy()), np.linalg.inv(THREE))
    assert log_determinant(-THREE) == -np.inf
    assert log_determinant(np.array([[1.0, 1.0], [1.0, 1.0]])) == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        inverse(-THREE)


# ---- iterates ---------------------------------------------------------------------------------


def test_regressions_of_a_precision_and_back():
    W = np.full((3, 3), 7.0)
    iterate = from_precision(THREE, W)
    assert iterate.W is W
    assert_allclose(iterate.theta, [3, 2, 1])
    assert_allclose(iterate.B, [[0, -1 / 3, 0], [-1 / 2, 0, -1 / 4], [0, -1 / 2, 0]])
    assert_allclose(to_precision(iterate), THREE)


def test_only_entries_of_both_regressions_count_and_are_averaged():
    B = np.array([[0.0, 0.5, 0.2], [0.1, 0.0, 0.0], [0.0, 0.3, 0.0]])
    T = to_precision(Iterate(np.eye(3), B, np.array([1.0, 2.0, 4.0])))
    assert_allclose(T, [[1, -0.35, 0], [-0.35, 2, 0], [0, 0, 4]])


def test_a_cold_start_has_no_regressions():
    seen = []
    problem = Problem(THREE, np.full((1, 3), 0.1), np.array([4.0, 2.0, 1.0]))

    def fill(*args):
        seen.append(args[:3])
        args[3][:] = 5.0

    iterate = cold_start(problem, fill)
    assert seen == [(problem.covariance, problem.alpha, problem.diagonal)]
    assert_array_equal(iterate.W, np.full((3, 3), 5.0))
    assert not iterate.B.any()
    assert iterate.B.shape == (3, 3)
    assert_allclose(iterate.theta, [0.25, 0.5, 1.0])
