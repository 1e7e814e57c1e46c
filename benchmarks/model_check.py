"""How often the check of a fit is right: on data from a fitted model, and without its network.

Per shape, rank and noise a data set is fitted with all defaults, data are drawn from the model
that came out, and these are fitted. Prints how many of these residuals are called white;
then the share of autoregressive columns (.5, 300 x 200) that are noticed under noise="diagonal".

    python benchmarks/model_check.py --seeds 5 --jobs 2
"""

import argparse
import os
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from joblib import Parallel, delayed
from untuned import AR, over_decades, setting, sparse, white

from mnpca import MNPCA
from mnpca.datasets import sample_matrix_normal

SHAPES = ((20, 20), (20, 300), (1000, 20), (50, 50), (300, 200), (1000, 300))
RANKS = (0, 3, 10)
NOISE = {"white": white, "unequal": over_decades(white), "network": sparse}


def fitted(Y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MNPCA(**options).fit(Y)


def verdict(Y, **options):
    """Return whether a fit takes its residual for white; None where it cannot tell."""
    return fitted(Y, **options).model_check_["white"]


def from_the_model(shape, rank, noise, seed):
    """Fit a draw, draw from the model that was fitted, and fit that."""
    n, p = shape
    kind = NOISE[noise]
    model = fitted(setting(n=n, p=p, rank=rank, rows=kind, cols=kind)(seed).Y)
    errors = sample_matrix_normal(model.row_precision_, model.col_precision_, seed)
    return verdict(model.denoise(all_components=True) + errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    parallel = Parallel(options.jobs)
    everything = []
    for shape in SHAPES:
        for rank in (rank for rank in RANKS if rank <= min(shape) // 4):
            for noise in NOISE:
                found = parallel(delayed(from_the_model)(shape, rank, noise, s) for s in seeds)
                told = [each for each in found if each is not None]
                everything += told
                print(
                    f"{shape[0]} x {shape[1]}, rank {rank}, {noise}: "
                    f"white in {sum(told)} of {len(told)}",
                    flush=True,
                )
    print(f"white in {np.mean(everything):.1%} of {len(everything)} fits of data from the model")
    columns = setting(cols=AR(0.5))
    found = parallel(delayed(verdict)(columns(seed).Y, noise="diagonal") for seed in seeds)
    print(f"autoregressive columns noticed in {1 - np.mean(found):.1%} of {len(found)} fits")


if __name__ == "__main__":
    main()
