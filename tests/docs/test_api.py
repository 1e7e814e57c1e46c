"""The reference page lists every public name, and nothing else."""

import importlib
import re
from pathlib import Path

import mnpca

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
MODULES = (
    "mnpca",
    "mnpca.datasets",
    "mnpca.diagnostics",
    "mnpca.interop.anndata",
    "mnpca.interop.networkx",
    "mnpca.io",
    "mnpca.metrics",
    "mnpca.plots",
    "mnpca.precision",
    "mnpca.report",
)


def listed_names():
    """Return module and name of every entry of the page's summaries."""
    module, entries, inside = "", [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif line.startswith(".. autosummary::"):
            inside = True
        elif line.startswith("```"):
            inside = False
        elif inside and (found := re.fullmatch(r"   ([\w.]+)", line)):
            entries.append((module, found[1]))
    return entries


def resolve(module, name):
    *path, last = f"{module}.{name}".split(".")
    return getattr(importlib.import_module(".".join(path)), last)


def test_every_public_name_is_on_the_page():
    listed = {id(resolve(*entry)) for entry in listed_names()}
    missing = [
        f"{module}.{name}"
        for module in MODULES
        for name in importlib.import_module(module).__all__
        if name != "__version__" and id(resolve(module, name)) not in listed
    ]
    assert not missing


def test_every_name_on_the_page_is_public():
    public = {
        (module, name) for module in MODULES for name in importlib.import_module(module).__all__
    }
    for module, name in listed_names():
        *path, last = f"{module}.{name}".split(".")
        assert (".".join(path), last) in public


def test_the_package_gives_its_public_names():
    for name in mnpca.__all__:
        assert getattr(mnpca, name) is not None
    assert set(mnpca.__all__) <= set(dir(mnpca))
