"""Classification of the paper's real data from the scores of PCA and of MNPCA.

Everything is fitted inside the training folds: z-scores, the paper's rank rule, the components,
and the settings of an RBF support vector machine (3-fold cross-validation on at most 1000
training rows). Accuracies are means over the folds of repeated stratified 5-fold
cross-validation. Every fold is a row of the output file, which a second run continues.

    python benchmarks/real_data.py --data FOLDER --repeats 10 --jobs 2 --output real_data.csv
"""

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

sys.path.insert(0, str(Path(__file__).parents[1]))  # for reproduction/

import numpy as np
from joblib import Parallel, delayed
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mnpca import MNPCA
from mnpca.selection.rank import paper_rank
from reproduction.real_sets import load_real

#: The sets whose shape agrees with the paper's table, smallest first.
SETS = [
    *("zoo", "tae", "wine", "sonar", "glass", "heart-statlog", "iono", "3sources"),
    *("balance-scale", "wisc", "vehicle", "german", "mfeat", "gesture", "eeg-eye"),
]
METHODS = ("pca", "diagonal", "graph", "auto")
FIELDS = ["set", "repeat", "fold", "method", "rank", "structure", "accuracy", "seconds"]
TUNING_ROWS = 1000


def scores(method, train, test, rank):
    """Fit the components on the training rows; return scores of both parts and the noise."""
    if method == "pca":
        model = PCA(rank).fit(train)
        return model.transform(train), model.transform(test), "identity"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # real data hardly ever pass the model check
        model = MNPCA(rank, noise=method).fit(train)
    noise = "/".join(side["structure"] for side in model.noise_.values())
    return model.transform(train), model.transform(test), noise


def accuracy(train, labels, test, truth, seed):
    """Tune a support vector machine on the training scores and count its hits."""
    rng = np.random.RandomState(seed)
    rows = np.sort(rng.permutation(len(labels))[:TUNING_ROWS])
    spread = max(train.var() * train.shape[1], np.finfo(float).tiny)
    grid = {"C": [1, 10, 100], "gamma": np.array([0.1, 0.3, 1, 3]) / spread}
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        search = GridSearchCV(SVC(), grid, cv=folds, refit=False).fit(train[rows], labels[rows])
    machine = SVC(**search.best_params_).fit(train, labels)
    return float(np.mean(machine.predict(test) == truth))


def one_fold(name, data, repeat, number, train, test, methods):
    """Rows of the table for one fold."""
    scaler = StandardScaler().fit(data.X[train])
    known, unseen = scaler.transform(data.X[train]), scaler.transform(data.X[test])
    rank = paper_rank(known)
    rows = []
    for method in methods:
        start = time.perf_counter()
        left, right, structure = scores(method, known, unseen, rank)
        seconds = time.perf_counter() - start
        hits = accuracy(left, data.y[train], right, data.y[test], repeat)
        rows.append([name, repeat, number, method, rank, structure, hits, round(seconds, 3)])
    return rows


def missing_folds(names, repeats, done, methods, folder):
    """Yield the folds of which the output file lacks a row."""
    for name in names:
        data = load_real(name, data_home=folder, standardize=False)
        for repeat in range(repeats):
            folds = StratifiedKFold(5, shuffle=True, random_state=repeat)
            for number, (train, test) in enumerate(_split(folds, data)):
                keys = [(name, str(repeat), str(number), method) for method in methods]
                wanted = [
                    method for key, method in zip(keys, methods, strict=True) if key not in done
                ]
                if wanted:
                    yield name, data, repeat, number, train, test, wanted


def _split(folds, data):
    """Split; zoo has a class of four."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(folds.split(data.X, data.y))


def read_rows(path):
    """Return the rows of the output file, each fold and method once."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return list({(r["set"], r["repeat"], r["fold"], r["method"]): r for r in rows}.values())


def print_table(rows, names, methods):
    """Print mean accuracies per set, and their mean over the sets."""
    print(f"{'set':<14}" + "".join(f"{m:>10}" for m in methods) + "   folds  noise chosen by auto")
    table = []
    for name in names:
        mine = [row for row in rows if row["set"] == name]
        values = [[float(r["accuracy"]) for r in mine if r["method"] == m] for m in methods]
        if not all(values):
            continue
        table.append([100 * np.mean(v) for v in values])
        chosen = [r["structure"] for r in mine if r["method"] == "auto"]
        counts = ", ".join(f"{c} {chosen.count(c)}" for c in sorted(set(chosen)))
        cells = "".join(f"{v:10.2f}" for v in table[-1])
        print(f"{name:<14}{cells}{len(values[0]):8d}  {counts}")
    if table:
        means = np.mean(table, axis=0)
        print(f"{'mean':<14}" + "".join(f"{v:10.2f}" for v in means) + f"   of {len(table)} sets")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("MNPCA_DATA"), help="folder of the files")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("real_data.csv"))
    args = parser.parse_args()
    if not args.data:
        parser.error("name the folder with the data by --data or the variable MNPCA_DATA")
    done = {(r["set"], r["repeat"], r["fold"], r["method"]) for r in read_rows(args.output)}
    tasks = missing_folds(args.sets, args.repeats, done, args.methods, args.data)
    new_file = not done
    with args.output.open("a", newline="") as file:
        writer = csv.writer(file)
        if new_file:
            writer.writerow(FIELDS)
        work = Parallel(args.jobs, return_as="generator_unordered")
        for rows in work(delayed(one_fold)(*task) for task in tasks):
            writer.writerows(rows)
            file.flush()
    print_table(read_rows(args.output), args.sets, args.methods)


if __name__ == "__main__":
    main()
