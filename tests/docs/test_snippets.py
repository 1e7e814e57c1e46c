"""What the documentation shows runs: README, pages and docstrings.

The examples are run by `make docs`, which an error of one of them ends.
"""

import copy
import doctest
import functools
import importlib
import pkgutil
import re
import shlex
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.known import known_fit

import mnpca
import reproduction
from mnpca.cli import main

mpl.use("Agg")

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Sizes of the data on the pages, and those that are as good to see whether the code runs.
SMALLER = {"300": "90", "200": "45", "240": "120"}
#: Modules that are not part of the documented surface and need what is not installed everywhere.
MODULES = sorted(
    module.name
    for package in (mnpca, reproduction)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
)


def blocks(page, language):
    """The fenced blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def skip_without_extras(name):
    """What is about an optional package needs it."""
    for part, packages in (("anndata", ["anndata"]), ("scale.md", ["torch", "dask"])):
        if part in name:
            for package in packages:
                pytest.importorskip(package)


def use_small_data(monkeypatch):
    """Give `make_paper_small` the smaller sizes."""
    rows, columns = int(SMALLER["300"]), int(SMALLER["200"])
    small = functools.partial(
        mnpca.datasets._matrices.make_paper_small, n_samples=rows, n_features=columns, density=0.04
    )
    monkeypatch.setattr("mnpca.datasets.make_paper_small", small)


@functools.cache
def reference_fit():
    X = known_fit()[0].Y
    return X, mnpca.LikelihoodMNPCA(2).fit(X)


def reference_names():
    """What reference pages take for granted: the package, data and a fitted model."""
    X, model = reference_fit()
    return {"mnpca": mnpca, "X": X.copy(), "model": copy.copy(model)}


@pytest.fixture(autouse=True)
def _quiet(tmp_path, monkeypatch):
    """Run in an empty folder; close figures."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, monkeypatch):
    skip_without_extras(page.name)
    code = blocks(page, "python")
    if not code:
        pytest.skip("no Python on this page")
    space = {} if page.name in ("README.md", "tutorial.md") else reference_names()
    if page.name != "README.md":  # the first that a user runs: as it stands
        use_small_data(monkeypatch)
        code = [
            re.sub(rf"\b({'|'.join(SMALLER)})\b", lambda size: SMALLER[size[0]], each)
            for each in code
        ]
    with warnings.catch_warnings():
        if page.name != "README.md":  # small data may not settle
            warnings.simplefilter("ignore", ConvergenceWarning)
        if "scanpy" in "".join(code):
            pytest.importorskip("scanpy")
            warnings.simplefilter("ignore")  # scanpy and umap warn about their own dependencies
        for block in code:
            exec(compile(block, str(page), "exec"), space)


def write_messy(frame, path):
    """The table of the page on messy tables: decimal commas, thousands, signs and words."""
    points_and_commas = str.maketrans(",.", ".,")
    messy = (2000 * frame).map(lambda x: f"{x:,.1f} %".translate(points_and_commas))
    messy.iloc[1, 2] = "n.d."
    messy.insert(0, "plate", 1)
    messy.insert(0, "patient", range(101, 141))
    messy.to_csv(path, sep=";", index=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page, tmp_path):
    """Every ``$ mnpca ...`` line, on a small table with a column of groups."""
    data, frame, _ = known_fit(n=40, p=20, c=8)
    frame.assign(group=data.labels).to_csv(tmp_path / "data.csv")
    frame.iloc[:5].to_csv(tmp_path / "new.csv")
    batches = frame.iloc[:, :0].assign(batch=["one", "two"] * 20)
    batches.to_csv(tmp_path / "covariates.csv")
    write_messy(frame, tmp_path / "messy.csv")
    lines = [
        line.removeprefix("$ mnpca ")
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ mnpca ")
    ]
    if not lines:
        pytest.skip("no command on this page")
    for line in lines:
        assert main(shlex.split(line, comments=True)) == 0, line


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, monkeypatch):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name}")
    skip_without_extras(name)
    if name.endswith("._edges"):  # fits many times, to any data
        use_small_data(monkeypatch)
    given = reference_names() if "take a fitted ``model``" in (module.__doc__ or "") else {}
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE, extraglobs=given)
    assert result.failed == 0
