"""Real data sets of the MN-PCA paper: from a local folder, else from OpenML."""

import csv
import gzip
import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

#: Environment variable that names the folder with the data files.
FOLDER_VARIABLE = "MNPCA_DATA"


@dataclass(frozen=True)
class RealSet:
    """What is known about one data set.

    Attributes
    ----------
    shape : tuple of int
        Rows, features and classes in the paper.
    n_components : int
        Number of components in the paper.
    file : str
        Name of the file without its ending, where it is not the set's own name.
    openml : tuple of int
        OpenML ids; several are put side by side.
    drop : tuple of str
        OpenML columns that are not features.
    exact : bool
        Whether the file is the paper's table; otherwise `note` says what it is.
    note : str
        What to know.
    checksum : str
        Of the complete rows as read, see `checksum`.
    """

    shape: tuple[int, int, int]
    n_components: int
    file: str = ""
    openml: tuple[int, ...] = ()
    drop: tuple[str, ...] = ()
    exact: bool = True
    note: str = ""
    checksum: str = ""


REAL_SETS = {
    "balance-scale": RealSet(
        (625, 4, 3), 2, openml=(11,), note="covariance is the identity", checksum="f660fde9537ddf87"
    ),
    "german": RealSet(
        (1000, 20, 2),
        8,
        openml=(31,),
        note="categories as numbers: the coding is a choice",
        checksum="9038e8ce15494a58",
    ),
    "glass": RealSet((214, 9, 6), 2, openml=(41,), checksum="90721293c71f89ad"),
    "heart-statlog": RealSet((270, 13, 2), 2, openml=(53,), checksum="53302a8a9710ab65"),
    "iono": RealSet((351, 34, 2), 6, openml=(59,), checksum="681a99ac2b74db67"),
    "sonar": RealSet((208, 60, 2), 6, openml=(40,), checksum="a6165cc69c692b9f"),
    "tae": RealSet((151, 5, 3), 2, openml=(48,), checksum="33cd225b9dbf2204"),
    "vehicle": RealSet((846, 18, 4), 3, openml=(54,), checksum="ca10bf2e130ec785"),
    "wine": RealSet((178, 13, 3), 2, openml=(187,), checksum="14cb163cb3cf9485"),
    "wisc": RealSet(
        (699, 9, 2), 2, openml=(15,), note="683 rows are complete", checksum="e4a1730c3d10c72e"
    ),
    "zoo": RealSet((101, 16, 7), 5, openml=(62,), drop=("animal",), checksum="a8a7404b3ce6d797"),
    "metabric": RealSet(
        (1975, 1000, 5),
        5,
        file="metabric-sub489",
        exact=False,
        note="489 genes of 1699 patients stand in for 1000 genes of 1975",
        checksum="32c782fd7e377111",
    ),
    "gse29505": RealSet((290, 384, 2), 5, exact=False, note="no copy known"),
    "3sources": RealSet((352, 700, 6), 7, file="3sources-bbc", checksum="16f69132f9045129"),
    "gesture": RealSet((3003, 32, 5), 7, note="videos a1 and a2", checksum="756bb54331b6ef75"),
    "eeg-eye": RealSet(
        (5000, 14, 2),
        2,
        openml=(1471,),
        note="a random 5000 of 14980 rows: a choice",
        checksum="e0dd236b8ae35366",
    ),
    "mfeat": RealSet(
        (2000, 649, 10), 6, openml=(14, 12, 16, 20, 22, 18), checksum="f33157ac6b34cd19"
    ),
    "radar": RealSet(
        (3500, 174, 7),
        5,
        file="radar-sub4",
        exact=False,
        note="four of the seven crops, 2000 rows",
        checksum="c7bf8c7a87a222a8",
    ),
}


def load_real(name, *, data_home=None, standardize=True, download=True):
    """Load a real data set of the paper with the paper's preprocessing.

    Rows with a missing value are left out, then every feature is scaled to mean 0 and variance
    1; a constant one cannot be and is left out (one of iono's).

    The file ``<name>.csv`` or ``<name>.csv.gz`` is looked for in `data_home`, else in the folder
    that the environment variable ``MNPCA_DATA`` names; it has a header, one row per sample,
    empty cells where a value is missing, and the class in the last column. Without a file, the
    set is fetched from OpenML where it is there (kept in scikit-learn's cache; OpenML's checksum
    is verified by the download).

    Parameters
    ----------
    name : str
        One of `REAL_SETS`.
    data_home : path, default=None
        Folder with the data files.
    standardize : bool, default=True
        Whether to scale the features.
    download : bool, default=True
        Whether OpenML may be asked.

    Returns
    -------
    Bunch
        X (n x p), y (labels as strings), feature_names, name, source ("file" or "openml"), and
        info, the `RealSet`.
    """
    if name not in REAL_SETS:
        raise ValueError(f"name must be one of {', '.join(REAL_SETS)}; got {name!r}.")
    info = REAL_SETS[name]
    path = _find_file(name, info, data_home)
    if path is not None:
        X, y, names, source = *_read_csv(path), "file"
    elif info.openml and download:
        X, y, names, source = *_from_openml(name, info), "openml"
    else:
        raise FileNotFoundError(_how_to_get(name, info, data_home))
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete], y[complete]
    if info.checksum and checksum(X) != info.checksum:
        warnings.warn(
            f"{name} holds other values than the copy behind the published figures.", stacklevel=2
        )
    if standardize:
        varies = X.std(axis=0) > 0
        X, names = X[:, varies], [names[i] for i in np.flatnonzero(varies)]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Bunch(X=X, y=y, feature_names=names, name=name, source=source, info=info)


def checksum(X):
    """Digest of the features that does not depend on the order of the rows."""
    order = np.lexsort(X.T[::-1])
    text = "\n".join(",".join(f"{value:.6g}" for value in X[i]) for i in order)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _find_file(name, info, data_home):
    folder = data_home or os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    for stem in (info.file, name):
        for ending in (".csv", ".csv.gz"):
            path = Path(folder) / f"{stem}{ending}"
            if stem and path.is_file():
                return path
    return None


def _read_csv(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    try:
        X = np.array([[float(cell) if cell else np.nan for cell in row[:-1]] for row in rows])
    except ValueError as error:
        raise ValueError(
            f"{path.name}: every column but the last must hold numbers or be empty ({error})."
        ) from None
    return X, np.array([row[-1] for row in rows]), header[:-1]


def _from_openml(name, info):
    """Fetch the pieces of a set and put them side by side; nominal features become numbers."""
    pieces, names, labels = [], [], None
    for data_id in info.openml:
        try:
            piece = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff")
        except OSError as error:
            raise FileNotFoundError(
                f"OpenML cannot be reached ({error}). {_how_to_get(name, info, None)}"
            ) from error
        kept = [i for i, feature in enumerate(piece.feature_names) if feature not in info.drop]
        pieces.append(np.asarray(piece.data, dtype=float)[:, kept])
        names += [piece.feature_names[i] for i in kept]
        target = np.asarray(piece.target).astype(str)
        if labels is not None and not np.array_equal(labels, target):
            raise ValueError(f"The pieces of {name} on OpenML do not have the same rows.")
        labels = target
    X, n_rows = np.hstack(pieces), info.shape[0]
    if len(X) > n_rows:  # the paper took a part and does not say which
        kept = np.sort(np.random.RandomState(0).choice(len(X), n_rows, replace=False))
        X, labels = X[kept], labels[kept]
    return X, labels, names


def _how_to_get(name, info, data_home):
    folder = data_home or os.environ.get(FOLDER_VARIABLE)
    where = f"is not in {folder}" if folder else "needs a folder with data files"
    remedy = (
        f"Put {info.file or name}.csv (header, features, class in the last column) in a folder "
        f"and name it by data_home or {FOLDER_VARIABLE}"
    )
    also = f", or allow the download of OpenML {info.openml}" if info.openml else ""
    return f"Data set {name} {where}. {remedy}{also}."
