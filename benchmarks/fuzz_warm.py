"""Warm starts of many kinds: every result is definite, and as near to the optimum as it says.

    python benchmarks/fuzz_warm.py --minutes 2 --seed 1000

Chains, factors and noise of 3 to 400 variables, in equal and unequal units; changes of S, of the
units and of the penalty; tolerances from 1e-6 to 3e-3; three starts in a row, each from the result
before. The optimum is a cold solve with a tolerance a hundred times smaller.
"""

import argparse
import time

import numpy as np
from precision import chain_samples, gene_samples, objective

from mnpca import sparse_precision


def noise_samples(p, n, rng):
    return rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p)


def draw(kind, p, n, equal, rng):
    X = kind(p, n, rng)
    return np.corrcoef(X.T) if equal else X.T @ X / n


def chain_of_starts(seed):
    """Check three warm starts in a row; return the largest share of a gap that was needed."""
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(3, 400)), int(rng.integers(20, 400))
    kind = (chain_samples, gene_samples, noise_samples)[rng.integers(3)]
    equal = rng.random() < 0.5
    S, other = (draw(kind, p, n, equal, rng) for _ in range(2))
    alpha = np.abs(S - np.diag(np.diagonal(S))).max() * rng.uniform(0.25, 0.9)
    tol, change = 10 ** rng.uniform(-6, -2.5), 10 ** rng.uniform(-4, -0.3)
    result = sparse_precision(S, alpha, tol=tol)
    worst = 0.0
    for _ in range(3):
        S = (1 - change) * S + change * other
        if rng.random() < 0.3:
            alpha *= rng.uniform(0.8, 1.2)
        if rng.random() < 0.2:
            unit = rng.uniform(0.5, 2, p)
            S, other = S * np.outer(unit, unit), other * np.outer(unit, unit)
        result = sparse_precision(S, alpha, tol=tol, init=result)
        T = result.precision.toarray()
        assert np.linalg.eigvalsh(T)[0] > 0, (seed, "not definite")
        value = objective(S, alpha, T, penalize_diagonal=False)
        best = sparse_precision(S, alpha, tol=min(tol / 100, 1e-8)).objective
        assert result.duality_gap <= tol * p * (1 + 1e-9), (seed, "gap above the tolerance")
        assert abs(value - result.objective) <= 1e-8 * max(1, abs(value)), (seed, "other value")
        assert value - best <= result.duality_gap + 1e-9 * p, (seed, "farther than its gap")
        if result.duality_gap > 1e-8:
            worst = max(worst, (value - best) / result.duality_gap)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    end, count, worst = time.monotonic() + 60 * options.minutes, 0, 0.0
    while time.monotonic() < end:
        worst = max(worst, chain_of_starts(options.seed + count))
        count += 1
    print(f"{3 * count} warm starts fine; the largest error is {worst:.3f} of its gap")


if __name__ == "__main__":
    main()
