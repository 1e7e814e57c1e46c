"""Slow, independent ways to the same solutions, and data to try them on."""

import numpy as np


def admm(S, penalty, n_iter=5000, rho=1.0):
    """Graphical lasso by ADMM (Boyd et al. 2011, section 6.5): eigendecompositions only.

    ``penalty`` is a matrix, diagonal included.
    """
    p = len(S)
    Z, U = np.diag(1.0 / (np.diagonal(S) + np.diagonal(penalty))), np.zeros((p, p))
    for k in range(n_iter):
        values, vectors = np.linalg.eigh(rho * (Z - U) - S)
        X = (vectors * (values + np.sqrt(values**2 + 4 * rho)) / (2 * rho)) @ vectors.T
        old = Z
        Z = X + U
        Z = np.sign(Z) * np.maximum(np.abs(Z) - penalty / rho, 0.0)
        U += X - Z
        primal, dual = np.linalg.norm(X - Z), rho * np.linalg.norm(Z - old)
        if max(primal, dual) < 1e-13 * np.linalg.norm(Z):
            break
        if k < 500 and primal > 10 * dual:
            rho, U = 2 * rho, U / 2
        elif k < 500 and dual > 10 * primal:
            rho, U = rho / 2, U * 2
    return Z


def objective(S, penalty, T):
    sign, logdet = np.linalg.slogdet(T)
    assert sign > 0
    return -logdet + np.sum(S * T) + np.sum(penalty * np.abs(T))


def penalty_matrix(alpha, p, penalize_diagonal):
    penalty = np.broadcast_to(np.asarray(alpha, float), (p, p)).copy()
    if not penalize_diagonal:
        np.fill_diagonal(penalty, 0.0)
    return penalty


def optimality_error(S, penalty, T):
    """Largest violation of S - inv(T) + penalty * sign(T) = 0, in units of the variances."""
    gradient = S - np.linalg.inv(T)
    on = T != 0
    error = np.where(on, np.abs(gradient + penalty * np.sign(T)), np.abs(gradient) - penalty)
    scale = np.sqrt(np.diagonal(S) + np.diagonal(penalty))
    return max(np.max(error / np.outer(scale, scale)), 0.0)


def chain_covariance(p, n, seed):
    rng = np.random.default_rng(seed)
    precision = 1.25 * np.eye(p) - 0.5 * (np.eye(p, k=1) + np.eye(p, k=-1))
    X = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((p, n)))
    return np.corrcoef(X)


def factor_covariance(p, n, seed):
    rng = np.random.default_rng(seed)
    k = max(3, p // 50)
    loadings = rng.standard_normal((p, k)) * (rng.random((p, k)) < 0.3)
    X = rng.standard_normal((n, k)) @ loadings.T + rng.standard_normal((n, p))
    return np.cov(X.T, bias=True)
