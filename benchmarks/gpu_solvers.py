"""Sparse precisions and the paper's two algorithms on a GPU."""

import time
import warnings

import gpu_data
import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mnpca import LikelihoodMNPCA, WassersteinMNPCA, sparse_precision
from mnpca.datasets import make_paper_small

FLOAT64, FLOAT32 = 54e12, 48e12
N_SAMPLES = 300
#: The last is much harder: 300 samples of many more strong factors than the penalty keeps apart.
CELLS = [("chain", 0.01), ("chain", 0.05), ("gene", 0.01), ("gene", 0.05)]


def _seconds(device, function):
    """Return the result and the seconds, work on the device included."""
    _wait(device)
    start = time.perf_counter()
    result = function()
    _wait(device)
    return result, time.perf_counter() - start


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


# ---- sparse precisions -----------------------------------------------------------------------


def _samples(data, p, rng):
    """Draw the samples of benchmarks/precision.py: a chain, or a gene-like factor model."""
    if data == "chain":
        # x_j = 0.5 x_{j-1} + noise has a tridiagonal precision.
        X = rng.standard_normal((N_SAMPLES, p))
        for j in range(1, p):
            X[:, j] += 0.5 * X[:, j - 1]
        return X
    n_factors = max(5, p // 50)
    loadings = rng.standard_normal((p, n_factors)) * (rng.random((p, n_factors)) < 0.2)
    noise = rng.standard_normal((N_SAMPLES, p)) * (0.5 + rng.random(p))
    return rng.standard_normal((N_SAMPLES, n_factors)) @ loadings.T + noise


def _share(precision):
    """Return the share of nonzeros off the diagonal."""
    p = precision.shape[0]
    return float((precision != 0).sum() - p) / (p * (p - 1))


def _penalty_for(S, wanted):
    """Find a penalty whose solution has about this share of nonzeros, as a quantile of |S|."""
    off = S.abs().flatten()[torch.randint(S.numel(), (1_000_000,), device=S.device)]
    quantile, init = wanted, None
    for _ in range(4):
        rank = max(int(quantile * len(off)), 1)
        alpha = float(torch.topk(off, rank).values[-1])
        init = sparse_precision(S, alpha, tol=1e-3, init=init)
        found = _share(init.precision)
        if abs(found - wanted) < 0.15 * wanted:
            break
        quantile *= wanted / max(found, 1e-6)
    return alpha


def precision(options):
    """2000 variables in at most 1 s, 6000 in at most 6 s, gap 1e-4 per variable."""
    device = options.device
    sparse_precision(torch.eye(300, device=device, dtype=torch.float64) + 0.1, 0.05)
    print("    p  data   nonzeros   alpha  seconds  gap/p    iterations  Cholesky + inverse, s")
    for p in [options.columns] if options.columns else [2000, 6000]:
        for data, wanted in CELLS[: None if options.hard else -1]:
            rng = np.random.default_rng(options.seed)
            X = torch.as_tensor(_samples(data, p, rng), device=device)
            S = torch.corrcoef(X.T)
            alpha = _penalty_for(S, wanted)
            result, seconds = _seconds(device, lambda S=S, a=alpha: sparse_precision(S, a))
            _, floor = _seconds(
                device,
                lambda T=result.precision: torch.cholesky_inverse(torch.linalg.cholesky(T)),
            )
            print(
                f"{p:5d}  {data:5}  {_share(result.precision):8.4f}  {alpha:6.3f}  {seconds:7.2f}"
                f"  {result.duality_gap / p:.1e}  {result.n_iter:9d}  {floor:12.4f}",
                flush=True,
            )


# ---- the paper's algorithms ------------------------------------------------------------------


def wasserstein(options):
    """500 rounds of 5 + 5 steps: 1000 x 2000 in at most 40 s, 1000 x 6000 in at most 90 s."""
    device = options.device
    for p in [options.columns] if options.columns else [2000, 6000]:
        n = options.rows or 1000
        Y = gpu_data.plant(n, p, 3, strength=0.5, device=device, seed=options.seed).Y
        long, short = max(n, p), min(n, p)
        step = 2 * (2 * long**3 + 3 * long**2 * short + 60 * short**3)
        model, seconds = _seconds(device, lambda Y=Y: _gradient(Y))
        print(
            f"{n} x {p}: {seconds:.1f} s, {model.n_iter_} rounds, floor "
            f"{2500 * step / FLOAT32:.1f} s (products of the steps), objective "
            f"{model.objective_history_[-1]:.4f}",
            flush=True,
        )
    _same_end(device)


def _gradient(Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return WassersteinMNPCA(3, method="gradient", center=False).fit(Y)


def _same_end(device):
    """Solve the same problem on the processor and on the device."""
    Y = make_paper_small(32, 1000, n_samples=90, n_features=60).Y
    with threadpool_limits(1):  # many threads on small matrices wait for each other
        here = _gradient(Y)
    there = _gradient(torch.as_tensor(Y, device=device))
    ends = [model.objective_history_[-1] for model in (here, there)]
    print(
        f"90 x 60: objective {ends[0]:.4f} on the processor, {ends[1]:.4f} on the device, "
        f"{abs(ends[1] / ends[0] - 1):.2%} apart",
        flush=True,
    )


def likelihood(options):
    """LikelihoodMNPCA on 1000 x 6000 in at most 30 s."""
    device = options.device
    n, p = options.rows or 1000, options.columns or 6000
    data = gpu_data.plant(n, p, 3, strength=0.5, device=device, seed=options.seed)
    LikelihoodMNPCA(3).fit(data.Y[:100, :80])
    factor = (p**3 + n**3) / FLOAT64
    print(f"floor of one factorization and inverse of each side {factor:.3f} s")
    for alpha in ("bic", 0.2):
        stages = []

        def note(progress, stages=stages):
            stages.append((progress.stage, time.perf_counter()))

        begin = time.perf_counter()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model, seconds = _seconds(
                device,
                lambda alpha=alpha, note=note: LikelihoodMNPCA(
                    3, alpha_row=alpha, alpha_col=alpha
                ).fit(data.Y, callback=note),
            )
        error = data.squared_error(
            np.column_stack([model.low_rank_.left.cpu(), np.ones(n)]),
            np.column_stack([model.low_rank_.right.cpu(), model.mean_.cpu()]),
        )
        print(
            f"alpha={alpha}: {seconds:.1f} s (first iteration after {stages[0][1] - begin:.1f} s), "
            f"{model.n_iter_} iterations of {len(stages)}, alpha {model.alpha_row_:.3f} and "
            f"{model.alpha_col_:.3f}, error {error:.3g}, "
            f"edges {(model.row_precision_.nnz - n) // 2} and {(model.col_precision_.nnz - p) // 2}"
            f"{'; ' + str(told[0].message) if told else ''}",
            flush=True,
        )
