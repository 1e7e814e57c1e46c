"""How fast is sparse_precision? In floors, and against other packages.

A floor is one dpotrf + dpotri at the same size on the same core in the same run: the time to
factorize and invert one dense covariance. Data: 300 samples of a chain ("chain") or of a sparse
factor model like a gene expression study ("gene"), as correlations.

    python benchmarks/precision.py                       # everything but the peers
    python benchmarks/precision.py peers --sizes 200 500 --multiple 30
    python benchmarks/precision.py path --seeds 2000 2010 2020

Peers are timed when they can be imported: pip install scikit-learn skglm gglasso pyhuge.
Runs on one core: set OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 for NumPy's and SciPy's libraries
(this script sets them if they are unset). Times are processor time, which other load on the
machine disturbs less than the clock on the wall.
"""

import argparse
import importlib.util
import multiprocessing
import os
import time
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from scipy.linalg import lapack

from mnpca import sparse_precision, sparse_precision_path

N_SAMPLES = 300
TARGET = 1e-4  # relative distance from the best known objective
BARS = [  # size, data, share of nonzeros, floors allowed
    (500, "chain", 0.01, 2),
    (500, "chain", 0.05, 2.5),
    (500, "chain", 0.17, 10),
    (500, "gene", 0.05, 14),
    (1000, "chain", 0.006, 2),
    (1000, "chain", 0.04, 4),
    (1000, "chain", 0.15, 25),
    (1000, "gene", 0.03, 25),
]
DENSITIES = (0.01, 0.05, 0.20)
PATH_BAR = 0.7  # of cold solves


# ---- data ------------------------------------------------------------------------------------


def chain_samples(p, n, rng):
    precision = 1.25 * np.eye(p) - 0.5 * (np.eye(p, k=1) + np.eye(p, k=-1))
    return np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((p, n))).T


def gene_samples(p, n, rng):
    """One factor for every 50 genes, each acting on a fifth of them; unequal noise."""
    k = max(5, p // 50)
    loadings = rng.standard_normal((p, k)) * (rng.random((p, k)) < 0.2)
    noise = rng.standard_normal((n, p)) * (0.5 + rng.random(p))
    return rng.standard_normal((n, k)) @ loadings.T + noise


SAMPLERS = {"chain": chain_samples, "gene": gene_samples}


def covariance(data, p, seed):
    return np.corrcoef(SAMPLERS[data](p, N_SAMPLES, np.random.default_rng(seed)).T)


def penalty_for(S, density):
    """Find the penalty whose solution has about this share of nonzeros off the diagonal."""
    p = len(S)
    low, high = 0.0, float(np.abs(S - np.eye(p)).max())
    init = None
    for _ in range(12):
        alpha = (low + high) / 2
        init = sparse_precision(S, alpha, init=init) if alpha > 0.02 else None
        found = 1.0 if init is None else (init.precision.nnz - p) / (p * (p - 1))
        if abs(found - density) < 0.02 * density:
            break
        low, high = (alpha, high) if found > density else (low, alpha)
    return alpha


# ---- timing ----------------------------------------------------------------------------------


def fastest(function, budget=1.0, most=15):
    """Shortest of several runs: as many as fit in the budget, at least one."""
    times = []
    while not times or (len(times) < most and sum(times) < budget):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def in_turn(*functions, budget=4.0, most=15):
    """Shortest run of each, run in turn."""
    times = []
    while not times or (len(times) < most and np.sum(times) < budget):
        times.append([fastest(function, 0) for function in functions])
    return np.min(times, axis=0)


def median_and_worst(ratios):
    return f"ratio {np.median(ratios):.2f}, worst of {len(ratios)} {np.max(ratios):.2f}"


def floor(p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((p, p))
    A = np.asfortranarray(X @ X.T + p * np.eye(p))
    times = []
    for _ in range(2 if p > 2000 else 7):
        copy = A.copy(order="F")
        start = time.process_time()
        factor, _ = lapack.dpotrf(copy, lower=1, overwrite_a=1, clean=0)
        lapack.dpotri(factor, lower=1, overwrite_c=1)
        times.append(time.process_time() - start)
    return min(times)


def objective(S, alpha, T, penalize_diagonal):
    try:
        logdet = 2 * np.log(np.diagonal(np.linalg.cholesky(T))).sum()
    except np.linalg.LinAlgError:
        return np.inf
    size = np.abs(T).sum() - (0 if penalize_diagonal else np.abs(np.diagonal(T)).sum())
    return np.sum(S * T) + alpha * size - logdet


def best_known(S, alpha, penalize_diagonal=False):
    return sparse_precision(S, alpha, tol=1e-7, penalize_diagonal=penalize_diagonal).objective


def reached(value, best):
    return value - best <= TARGET * abs(best)


# ---- the solvers: a ladder of tolerances from loose to tight, and one solve -------------------


def solve_mnpca(S, alpha, tol):
    return sparse_precision(S, alpha, tol=tol).precision


def solve_sklearn(S, alpha, tol):
    from sklearn.covariance import graphical_lasso

    return graphical_lasso(S, alpha, tol=tol, max_iter=1000)[1]


def solve_skglm(S, alpha, tol):
    from skglm.covariance import GraphicalLasso

    return GraphicalLasso(alpha=alpha, tol=tol).fit(S, mode="precomputed").precision_


def solve_gglasso(S, alpha, tol):
    from contextlib import redirect_stdout
    from io import StringIO

    from gglasso.solver.single_admm_solver import block_SGL

    with redirect_stdout(StringIO()):
        return block_SGL(S, alpha, np.eye(len(S)), tol=tol, rtol=tol, max_iter=5000)["Theta"]


def solve_pyhuge(S, alpha, tol):
    from pyhuge import huge_glasso

    T = huge_glasso(S, lambda_=[alpha], verbose=False, cov_output=True).icov[0]
    T = T.toarray() if hasattr(T, "toarray") else np.asarray(T)
    return (T + T.T) / 2


LADDERS = {
    "mnpca": (solve_mnpca, [1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 7e-5, 5e-5, 3e-5, 1e-5]),
    "sklearn": (solve_sklearn, [10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4]),
    "skglm": (solve_skglm, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]),
    "gglasso": (solve_gglasso, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]),
    # pyhuge has no tolerance and penalizes the diagonal: it is held to that problem's optimum.
    "pyhuge": (solve_pyhuge, [None]),
}


def climb(name, S, alpha, best, began, report):
    """Time the loosest tolerance that reaches the target; report (seconds, tolerance, note).

    ``began`` gets the processor time at which each solve begins.
    """
    solve, ladder = LADDERS[name]
    warnings.simplefilter("ignore")
    solve(S[:20, :20].copy(), 0.3, ladder[0])  # compilation and imports are not timed
    note = ""
    for tol in ladder:
        try:
            start = began.value = time.process_time()
            T = solve(S.copy(), alpha, tol)
            once = time.process_time() - start
        except Exception as error:  # a peer's failure is a result
            note = f"{type(error).__name__}: {str(error)[:60]}"
            continue
        T = T.toarray() if hasattr(T, "toarray") else T
        value = objective(S, alpha, T, penalize_diagonal=name == "pyhuge")
        if reached(value, best):
            began.value = np.inf
            if once < 2:
                once = min(once, fastest(lambda tol=tol: solve(S.copy(), alpha, tol), most=5))
            report((once, tol, ""))
            return
        gap = (value - best) / abs(best)
        note = "not positive definite" if value == np.inf else f"off by {gap:.0e} at {tol}"
    report((None, None, note or "no tolerance reached the target"))


def climb_apart(name, S, alpha, best, allowed, limit):
    """Climb in a process of its own, ended when a solve takes more than the allowed time.

    Or the whole climb more than the limit, both in processor seconds. Returns what `climb`
    reports, or None, and the seconds of its longest solve.
    """
    context = multiprocessing.get_context("fork")
    answers, began = context.SimpleQueue(), context.Value("d", np.inf)
    process = context.Process(target=climb, args=(name, S, alpha, best, began, answers.put))
    process.start()
    spent = 0.0
    while process.is_alive() and answers.empty():
        process.join(0.1)
        total = _processor_time(process.pid) if process.is_alive() else 0.0
        spent = max(spent, total - began.value)
        if total - began.value > allowed or total > limit:
            break
    process.kill()
    process.join()
    return (None, spent) if answers.empty() else (answers.get(), spent)


def _processor_time(pid):
    """Processor seconds of another process (Linux)."""
    with open(f"/proc/{pid}/stat") as handle:
        fields = handle.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- the tables ------------------------------------------------------------------------------


def show_bars(options):
    print("\nIn floors (loosest tolerance that reaches the target; and at the default tolerance)")
    print("    p  data   nonzeros   floor     floors  bar    tol      at 1e-4  sweeps")
    for p, data, density, bar in BARS:
        if p not in options.sizes:
            continue
        S = covariance(data, p, options.seeds[0])
        alpha = penalty_for(S, density)
        best = best_known(S, alpha)
        for tol in LADDERS["mnpca"][1]:
            result = sparse_precision(S, alpha, tol=tol)
            if reached(result.objective, best):
                break
        unit = floor(p)
        spent = fastest(lambda S=S, alpha=alpha, tol=tol: sparse_precision(S, alpha, tol=tol))
        default = fastest(lambda S=S, alpha=alpha: sparse_precision(S, alpha))
        unit = min(unit, floor(p))
        found = 100 * (result.precision.nnz - p) / (p * (p - 1))
        verdict = "ok" if spent <= bar * unit else "over"
        print(
            f"{p:5d}  {data:5s}  {found:6.2f}%  {1e3 * unit:7.2f} ms  {spent / unit:6.2f}  "
            f"{bar:<4g} {verdict:4s} {tol:g}  {default / unit:6.2f}  {result.n_iter}",
            flush=True,
        )


def show_peers(options):
    names = [name for name in LADDERS if name in options.peers or name == "mnpca"]
    present = [name for name in names if importlib.util.find_spec(name)]
    for name in sorted(set(names) - set(present)):
        print(f"{name}: absent")
    print("\nSeconds to reach the target, each at its loosest tolerance that does;")
    print(f"slower: one solve took more than {options.multiple:g} times ours, and was ended\n")
    print("| variables | data | nonzeros | " + " | ".join(present) + " | best peer / ours |")
    print("|---" * (len(present) + 4) + "|")
    leads, failures = [], []
    for p in options.sizes:
        for data in options.data:
            S = covariance(data, p, options.seeds[0])
            for density in options.densities:
                lead = _show_cell(p, data, density, S, present, failures, options)
                leads.append(lead)
    leads = np.array(leads)
    mean = np.exp(np.log(leads).mean())
    print(f"\nbest peer / ours: geometric mean at least {mean:.1f}, least {leads.min():.1f}")
    print("Failures:" if failures else "No failures.")
    for line in failures:
        print("  " + line)


def _show_cell(p, data, density, S, present, failures, options):
    """Print one line; return by how much the best peer is slower, at least."""
    alpha = penalty_for(S, density)
    best = {diagonal: best_known(S, alpha, diagonal) for diagonal in (False, True)}
    allowed, limit, seconds, at_least, words = np.inf, np.inf, {}, [], []
    for name in present:
        answer, spent = climb_apart(name, S, alpha, best[name == "pyhuge"], allowed, limit)
        if answer is None:
            at_least.append(spent)
            words.append("slower")
        elif answer[0] is None:
            failures.append(f"{name}, p={p} {data} {density:.0%}: {answer[2]}")
            words.append("fails")
        else:
            seconds[name] = answer[0]
            words.append(f"{answer[0]:.4f}")
        # Ours comes first. No verdict on less than a second.
        allowed, limit = max(options.multiple * seconds["mnpca"], 1.0), options.limit
    ours = seconds.pop("mnpca")
    finished = min(seconds.values(), default=np.inf)
    lead = min([finished, *at_least]) / ours
    sign = "" if finished / ours == lead else "> "
    cells = " | ".join(words)
    print(f"| {p} | {data} | {density:.0%} | {cells} | {sign}{lead:.1f} |", flush=True)
    return lead


def show_path(options):
    print(f"\nA path of 8 penalties against 8 cold solves (bar {PATH_BAR})")
    for p in options.sizes:
        for data in options.data:
            ratios = []
            for seed in options.seeds:
                S = covariance(data, p, seed)
                alphas = np.geomspace(penalty_for(S, 0.01), penalty_for(S, 0.20), 8)
                path, cold = in_turn(
                    lambda S=S, alphas=alphas: sparse_precision_path(S, alphas),
                    lambda S=S, alphas=alphas: [sparse_precision(S, a) for a in alphas],
                )
                ratios.append(path / cold)
            print(f"{p:5d}  {data:5s}  {median_and_worst(ratios)}", flush=True)


def _memory_case(report, p=5000, block=10):
    """Blocks of equally correlated variables; the peak is the kernel's own (Linux)."""
    rng = np.random.default_rng(1000)
    shared = np.repeat(rng.standard_normal((N_SAMPLES, p // block)), block, axis=1)
    X = np.sqrt(0.6) * shared + np.sqrt(0.4) * rng.standard_normal((N_SAMPLES, p))
    S = np.corrcoef(X.T)
    sparse_precision(S[:40, :40].copy(), 0.3)
    with open("/proc/self/clear_refs", "w") as handle:
        handle.write("5")
    before = _status("VmRSS")
    start = time.process_time()
    result = sparse_precision(S, 0.3)
    seconds = time.process_time() - start
    extra = (_status("VmHWM") - before) / (8 * p * p)
    share = (result.precision.nnz - p) / (p * (p - 1))
    report((seconds, extra, share, len(result.components), result.duality_gap / p))


def _status(field):
    with open("/proc/self/status") as handle:
        for line in handle:
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
    raise OSError(f"no {field} in /proc/self/status")


def show_memory(options):
    print("\np = 5000 in many components")
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=_memory_case, args=(answers.put,))
    process.start()
    seconds, extra, share, count, gap = answers.get()
    process.join()
    unit = floor(5000)
    print(
        f"nonzeros {share:.2%} in {count} components: {seconds:.2f} s = {seconds / unit:.2f} floors"
        f" (bar 3), {extra:.2f} p^2 doubles above the input (bar 4), gap/p {gap:.0e}"
    )


SECTIONS = {
    "bars": show_bars,
    "path": show_path,
    "memory": show_memory,
    "peers": show_peers,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; default: not peers")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--data", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS))
    parser.add_argument("--densities", type=float, nargs="+", default=list(DENSITIES))
    parser.add_argument("--peers", nargs="+", default=[n for n in LADDERS if n != "mnpca"])
    parser.add_argument("--multiple", type=float, default=30, help="end a peer at so many of ours")
    parser.add_argument(
        "--limit", type=float, default=120, help="seconds for all solves of a peer in a cell"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000], help="one but for ratios")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown section {', '.join(sorted(unknown))}")
    for name in options.sections or [n for n in SECTIONS if n != "peers"]:
        SECTIONS[name](options)


if __name__ == "__main__":
    main()
