"""All connected components of a problem: starts from earlier results, solutions, assembly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from scipy import sparse

from mnpca._components import group_by_label
from mnpca._typing import FloatArray, IntArray, Precision
from mnpca.precision._kernels import fill_dual
from mnpca.precision.block_descent import ComponentSolution, solve_component
from mnpca.precision.certificate import Iterate
from mnpca.precision.problem import Problem
from mnpca.precision.result import PrecisionResult

# Components at least this large are worth a thread of their own.
LARGE = 200


class Start:
    """The iterate behind a result, or on the line through two results.

    ``t`` is how far beyond the last result to start, in units of its distance from the one before.
    """

    def __init__(self, last: PrecisionResult, before: PrecisionResult | None = None, t: float = 0):
        self.last, self.t = _Lookup(last), t
        self.before = None if before is None else _Lookup(before)

    def iterate(self, problem: Problem, index: IntArray) -> Iterate:
        """Return a start for the variables of one component, feasible for its problem."""
        W, T = self.last.restrict(problem.diagonal, index)
        theta = T.diagonal()
        rows, columns = np.repeat(np.arange(problem.size), np.diff(T.indptr)), T.indices
        coefficients = -T.data / theta[rows]
        if self.before is not None:
            t = self.t
            W_before, T_before = self.before.restrict(problem.diagonal, index)
            W_before *= t
            W *= 1.0 + t
            W -= W_before
            theta_before = T_before.diagonal()
            then = -T_before.toarray()[rows, columns] / theta_before[rows]
            # Coefficients may shrink to zero, but neither appear nor change sign.
            ahead = coefficients + t * (coefficients - then) * (then != 0)
            coefficients = np.where(ahead * coefficients > 0, ahead, 0.0)
            theta *= (theta / theta_before) ** t
        S, alpha, diagonal = problem.covariance, problem.alpha, problem.diagonal
        fill_dual(S, alpha, diagonal, W, T.indptr, columns, T.data, True, W)
        B = np.zeros_like(W)
        B[rows, columns] = coefficients
        np.fill_diagonal(B, 0.0)
        return Iterate(W, B, theta)


class _Lookup:
    """A result whose variables are looked up for the components of another problem."""

    def __init__(self, result: PrecisionResult):
        self.precision, self.blocks = result.precision, result._blocks
        # Block of each variable, -1 for one that stands alone, and the place in it.
        self.number = np.full(len(result.labels), -1)
        self.place = np.zeros(len(result.labels), np.int64)
        for c, (index, _) in enumerate(self.blocks):
            self.number[index] = c
            self.place[index] = np.arange(len(index))

    def restrict(
        self, diagonal: FloatArray, index: IntArray
    ) -> tuple[FloatArray, sparse.csr_array]:
        """Return the working covariance and the precision, scaled to new variances."""
        T = self.precision if len(index) == len(self.number) else self.precision[index][:, index]
        W = self._covariance(index, T)
        scale = np.sqrt(diagonal / np.diagonal(W))
        if np.any(scale != 1.0):
            W *= scale
            W *= scale[:, None]
        rows = np.repeat(scale, np.diff(T.indptr))
        columns, indptr = T.indices.astype(np.int64), T.indptr.astype(np.int64)
        return W, sparse.csr_array((T.data / (rows * scale[columns]), columns, indptr), T.shape)

    def _covariance(self, index: IntArray, T: Precision) -> FloatArray:
        number = self.number[index]
        W: FloatArray = np.diag(1.0 / T.diagonal())
        for c in np.unique(number[number >= 0]):
            here = np.flatnonzero(number == c)
            at, (variables, covariance) = self.place[index[here]], self.blocks[c]
            if len(here) == len(index) == len(variables):
                W[:] = covariance
                break
            W[np.ix_(here, here)] = covariance[np.ix_(at, at)]
        return W


def solve_problem(
    problem: Problem, labels: IntArray, tol: float, start: Start | None, max_iter: int
) -> PrecisionResult:
    """Solve a checked problem by connected component and assemble the result."""
    components = [index for index in group_by_label(labels) if len(index) > 1]

    def solve(index: IntArray) -> ComponentSolution:
        part = problem.restrict(index)
        warm = None if start is None else start.iterate(part, index)
        return solve_component(part, tol, max_iter, warm)

    n_large = sum(len(index) >= LARGE for index in components)
    # numba.get_num_threads would start numba's own threads, which slows other libraries down.
    n_threads = min(numba.config.NUMBA_NUM_THREADS, n_large)  # type: ignore[attr-defined]
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            solutions = list(pool.map(solve, components))
    else:
        solutions = [solve(index) for index in components]
    return _assemble(problem, labels, components, solutions)


def _assemble(
    problem: Problem,
    labels: IntArray,
    components: list[IntArray],
    solutions: list[ComponentSolution],
) -> PrecisionResult:
    """Join the solutions of the components; variables in none of them stand alone."""
    p = problem.size
    alone = np.ones(p, dtype=bool)
    proofs = [solution.certificate for solution in solutions]
    rows, columns, entries = [], [], []
    for index, proof in zip(components, proofs, strict=True):
        T = proof.precision
        rows.append(index[T.rows])
        columns.append(index[T.columns])
        entries.append(T.values)
        alone[index] = False
    rows.append(np.flatnonzero(alone))
    columns.append(np.flatnonzero(alone))
    entries.append(1.0 / problem.diagonal[alone])
    places = (np.concatenate(rows), np.concatenate(columns))
    precision = sparse.coo_array((np.concatenate(entries), places), shape=(p, p)).tocsr()
    value = float(np.sum(np.log(problem.diagonal[alone]) + 1.0))
    return PrecisionResult(
        precision=precision,
        objective=value + sum(proof.value for proof in proofs),
        duality_gap=float(sum(proof.gap for proof in proofs)),
        n_iter=max((solution.n_iter for solution in solutions), default=0),
        labels=labels,
        _blocks=tuple(
            (index, solution.iterate.W)
            for index, solution in zip(components, solutions, strict=True)
        ),
    )
