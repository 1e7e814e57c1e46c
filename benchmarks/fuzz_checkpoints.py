"""Altered checkpoints: a fit resumes from them, or refuses them with one clear error."""

import warnings
from pathlib import Path

import fuzz_bytes
import numpy as np
from fuzz_models import STRUCTURAL
from sklearn.base import clone

import mnpca
import mnpca.estimators._files as progress_module
from mnpca.estimators._files import CheckpointError
from mnpca.persistence import ModelFileError

ROWS, COLUMNS = 14, 9
# Checkpoints kept of every fit, from its first report to its last.
KEPT = 4
LIES = {way: STRUCTURAL[way] for way in ("json value", "array values", "swapped arrays")}


def matrix():
    """Return a rank-one signal in noise that differs between columns."""
    rng = np.random.default_rng(0)
    signal = 3 * np.outer(rng.normal(size=ROWS), rng.normal(size=COLUMNS))
    return signal + rng.normal(size=(ROWS, COLUMNS)) * rng.uniform(0.5, 2, size=COLUMNS)


def with_holes():
    """Return the matrix without a few of its cells."""
    X = matrix()
    X[np.arange(ROWS), np.arange(ROWS) % COLUMNS] = np.nan
    return X


def cube():
    """Return three matrices."""
    return np.stack([matrix() + i for i in range(3)])


FITS = [
    (mnpca.MNPCA(1, noise="graph"), matrix),
    (mnpca.MNPCA(), matrix),
    (mnpca.MNPCA(1), with_holes),
    (mnpca.LikelihoodMNPCA(1), matrix),
    (mnpca.LikelihoodMNPCA(1), with_holes),
    (mnpca.WassersteinMNPCA(1, max_iter=20), matrix),
    (mnpca.WassersteinMNPCA(1, method="gradient", max_iter=5), matrix),
    (mnpca.TensorMNPCA(1), cube),
    (mnpca.DimensionFoldingPCA(1, 1), cube),
]


def corpus(rng, folder):
    """Return (name, bytes) of good checkpoints; the name begins with the number of its fit."""
    progress_module.WRITE_SHARE = progress_module.LOSS_SHARE = 0.0
    path, files = folder / "good.ckpt", []
    for number in range(len(FITS)):
        kept = []
        _fit(number, checkpoint=path, callback=lambda _, kept=kept: kept.append(path.read_bytes()))
        for at in {*np.linspace(0, len(kept) - 1, KEPT).astype(int)}:
            files.append((f"{number}-{at}.ckpt", kept[at]))
        path.unlink()
    return files


def alter(files, rng):
    """Return (way, file name, bytes) of one altered checkpoint.

    Mostly archives that are well formed and lie: no other damage comes as far as the solvers.
    """
    name, data = files[rng.integers(len(files))]
    ways = LIES if rng.random() < 0.8 else {**fuzz_bytes.WAYS, **STRUCTURAL}
    way = str(rng.choice(list(ways)))
    return way, name, ways[way](data, rng)


def read(path):
    """Go on from the file."""
    try:
        _fit(int(Path(path).name.split("-")[0]), resume_from=path)
    except (ModelFileError, CheckpointError):
        return "refused"
    return "read"


def _fit(number, **arguments):
    model, data = FITS[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(data(), **arguments)
