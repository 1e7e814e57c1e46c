"""Maximum likelihood precision on a given graph, without penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mnpca.precision._kernels.refit import refit_sweeps
from mnpca.precision._types import Array, Index
from mnpca.precision.block_descent import ComponentSolution, from_newton
from mnpca.precision.blocks import Groups
from mnpca.precision.certificate import by_factors
from mnpca.precision.iterate import Iterate
from mnpca.precision.newton import newton
from mnpca.precision.problem import (
    ASYMMETRY,
    TINY,
    NotCertifiedError,
    Problem,
    check_covariance,
    check_tolerance,
)
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import assemble, check_start
from mnpca.precision.warm import recall

MAX_SWEEPS = 200
MAX_CERTIFICATES = 6


def refit_on_support(
    S: Any,
    support: Any,
    *,
    tol: float = 1e-8,
    init: PrecisionResult | None = None,
) -> PrecisionResult:
    """Gaussian maximum likelihood precision with zeros outside a graph.

    Minimizes ``-logdet(T) + tr(S T)`` subject to ``T_ij = 0`` where ``support_ij`` is zero, by
    connected component of the graph.

    Parameters
    ----------
    S : array-like or sparse array of shape (p, p)
        Covariance matrix. Only its diagonal and its entries on the support matter; a sparse S
        may hold just those.
    support : array-like or sparse array of shape (p, p)
        Symmetric; edges are its nonzeros off the diagonal.
    tol : float, default=1e-8
        The duality gap of the result is at most ``tol * p``.
    init : PrecisionResult, optional
        Result for a similar S and support, to start from.

    Returns
    -------
    PrecisionResult

    Raises
    ------
    ValueError
        If the input is not valid, or the likelihood has no maximum (a graph too dense for the
        rank of S). The message names the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca.precision import refit_on_support
    >>> S = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.5], [0.3, 0.5, 1.0]])
    >>> chain = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    >>> refit_on_support(S, chain).precision.toarray().round(3)
    array([[ 1.333, -0.667,  0.   ],
           [-0.667,  1.667, -0.667],
           [ 0.   , -0.667,  1.333]])
    """
    tol = check_tolerance(tol)
    covariance, graph = _check(S, support)
    diagonal = np.asarray(covariance.diagonal(), dtype=np.float64)
    if not np.all(np.isfinite(diagonal)) or diagonal.min() < TINY:
        raise ValueError(
            f"S needs positive variances; the one at {int(diagonal.argmin())} is not. "
            "Drop the variable."
        )
    _check_symmetry(covariance, graph, np.sqrt(diagonal))
    if init is not None:
        check_start(init, len(diagonal))
    labels = connected_components(graph, directed=False)[1].astype(np.int64)
    groups = Groups.of(labels)
    solutions = []
    for component in groups:
        index = component.variables
        block, edges = _restrict(covariance, index), graph[index][:, index]
        start = None if init is None else recall(init, component, diagonal[index])
        solutions.append(_solve(block, diagonal[index], edges, tol, start))
    return assemble(diagonal, labels, groups, solutions)


def _check(S: Any, support: Any) -> tuple[Any, Any]:
    """S as a CSR or dense array and the graph as CSR without diagonal."""
    S = sparse.csr_array(S).astype(np.float64) if sparse.issparse(S) else check_covariance(S)
    graph = sparse.csr_array(support).astype(bool)
    if graph.shape != S.shape or S.shape[0] != S.shape[1]:
        raise ValueError(f"S and support must be square and alike, got {S.shape}, {graph.shape}.")
    graph = graph.tocoo()
    off = graph.data & (graph.row != graph.col)
    graph = sparse.csr_array((graph.data[off], (graph.row[off], graph.col[off])), shape=graph.shape)
    if (graph != graph.T).nnz:
        raise ValueError("support must be symmetric; pass support | support.T.")
    graph.sort_indices()
    return S, graph


def _check_symmetry(S: Any, graph: Any, scale: Array) -> None:
    """Raise unless S is symmetric on the graph."""
    edges = sparse.triu(graph, format="coo")
    i, j = edges.row, edges.col
    with np.errstate(invalid="ignore"):  # infinite entries are found later
        difference = np.abs(np.asarray(S[i, j]) - np.asarray(S[j, i]))
    apart = np.flatnonzero(difference > ASYMMETRY * scale[i] * scale[j])
    if len(apart):
        first = (int(i[apart[0]]), int(j[apart[0]]))
        raise ValueError(
            f"S must be symmetric; entries {first} and {first[::-1]} differ. Pass (S + S.T) / 2."
        )


def _restrict(S: Any, index: Index) -> Array:
    if sparse.issparse(S):
        block: Array = S[index][:, index].toarray()
    else:
        block = S if len(index) == len(S) else S[np.ix_(index, index)]
    if not np.all(np.isfinite(block)):
        raise ValueError("S must be finite.")
    return block


def _solve(
    S: Array, diagonal: Array, edges: Any, tol: float, start: Iterate | None
) -> ComponentSolution:
    """Maximum likelihood on one connected component."""
    p = len(diagonal)
    # The graph as a penalty: nothing on an edge, more than any covariance elsewhere.
    barrier = 10.0 * max(np.abs(S).max(), diagonal.max())
    alpha = np.where(edges.toarray(), 0.0, barrier)
    problem = Problem(S, alpha, diagonal)
    if start is not None:
        solution = _sweep(problem, edges, tol, start)
        if solution is not None:
            return solution
    cold = Iterate(S.copy(), np.zeros((p, p)), 1.0 / diagonal)
    solution = _sweep(problem, edges, tol, cold)
    if solution is not None:
        return solution
    point = newton(problem, np.diag(1.0 / diagonal), tol * p)
    if point.gap > tol * p:
        raise NotCertifiedError(
            "the likelihood has no maximum on this support, or rounding hides it: give fewer "
            "edges per variable, add a ridge to S's diagonal, or relax tol."
        )
    return from_newton(point)


def _sweep(problem: Problem, edges: Any, tol: float, iterate: Iterate) -> ComponentSolution | None:
    """Sweep and certify until the gap passes; None if that does not succeed."""
    goal = tol * problem.size
    target, total, dual = 0.3 * goal, 0, -np.inf
    work = np.empty_like(iterate.W)
    iterate.B *= edges.toarray()
    indptr, neighbors = edges.indptr.astype(np.int64), edges.indices.astype(np.int64)
    for _ in range(MAX_CERTIFICATES):
        sweeps, _, ok = refit_sweeps(
            problem.covariance,
            indptr,
            neighbors,
            iterate.W,
            iterate.B,
            iterate.theta,
            target,
            MAX_SWEEPS,
        )
        total += sweeps
        if not ok:
            return None
        certificate = by_factors(problem, iterate, goal, dual, work)
        if certificate.gap <= goal:
            return ComponentSolution(iterate, certificate, total)
        dual = certificate.dual
        target *= 0.1
    return None
