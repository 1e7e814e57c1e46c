"""What the automatic choice costs: all defaults, in units of a fit that is told what they find.

Prints per shape the processor seconds of `MNPCA()`, those of `fit_mnpca` with the rank and the two
structures that it chose, and their ratio, as medians over the seeds. (`MNPCA(k)` searches as
`MNPCA()` does: its noise does not depend on k.)

    python benchmarks/choice_cost.py --seeds 3
"""

import argparse
import os
import time
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from untuned import AR, setting, white

from mnpca import MNPCA
from mnpca.datasets import make_paper_large, make_paper_small
from mnpca.solvers.mnpca import fit_mnpca

SHAPES = {
    "300x200": lambda seed: make_paper_small(c=32, seed=seed).Y,
    "1000x2000": lambda seed: make_paper_large(2000, seed=seed).Y,
    "2000x20": lambda seed: setting(n=2000, p=20, rank=3, rows=white, cols=AR(0.6))(seed).Y,
}


def timed(fit, *arguments, **options):
    """Return a fit and its processor seconds."""
    started = time.process_time()
    return fit(*arguments, **options), time.process_time() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, choices=SHAPES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    MNPCA().fit(SHAPES["300x200"](0)[:80, :60])  # compiles
    print("| data | all defaults | told | ratio | chosen |")
    for name in args.shapes:
        runs = []
        for seed in range(args.first, args.first + args.seeds):
            Y = SHAPES[name](seed)
            model, ours = timed(MNPCA().fit, Y)
            noise = tuple(model.noise_[side]["structure"] for side in ("rows", "columns"))
            _, told = timed(fit_mnpca, Y, model.n_components_, noise=noise)
            runs.append((ours, told, ours / told))
        ours, told, ratio = np.median(runs, axis=0)
        chosen = f"{model.n_components_}, {'/'.join(noise)}"
        print(f"| {name} | {ours:.2f} s | {told:.2f} s | {ratio:.1f} | {chosen} |", flush=True)


if __name__ == "__main__":
    main()
