"""The reference page lists every public name, and nothing else; each has an example."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

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


def test_every_public_name_has_an_example():
    """`test_snippets` runs them."""
    without = [
        f"{module}.{name}"
        for module, name in listed_names()
        if callable(item := resolve(module, name))
        and not re.search(r"Examples\n-+\n>>> ", inspect.getdoc(item))
    ]
    assert not without


def test_every_option_of_the_commands_is_on_their_page():
    typer = pytest.importorskip("typer")
    from mnpca.cli.app import app

    page = PAGE.with_name("command_line.md").read_text(encoding="utf-8")
    commands = typer.main.get_command(app).commands
    assert commands.keys() == {"fit", "transform", "report", "demo"}
    options = {option for each in commands.values() for p in each.params for option in p.opts}
    assert not {o for o in options if o.startswith("--") and f"`{o}" not in page}


def test_every_method_of_an_estimator_is_shown():
    """In a docstring, or on a page."""
    root = PAGE.parents[1]
    pages = "".join(page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md"))
    source = "".join(file.read_text(encoding="utf-8") for file in root.glob("src/**/*.py"))
    code = re.findall(r"```python\n.*?```", pages, re.DOTALL) + re.findall(r">>> .*", source)
    estimators = [each for name in mnpca.__all__ if hasattr(each := getattr(mnpca, name), "fit")]
    own = {
        name
        for estimator in estimators
        for name, method in inspect.getmembers(estimator, callable)
        if not name.startswith("_") and method.__module__.startswith("mnpca")
    }
    assert not {name for name in own if f".{name}(" not in "".join(code)}


def test_the_package_gives_its_public_names():
    for name in mnpca.__all__:
        assert getattr(mnpca, name) is not None
    assert set(mnpca.__all__) <= set(dir(mnpca))
    assert mnpca.datasets.make_paper_small
    with pytest.raises(AttributeError, match="has no attribute 'PCA'"):
        mnpca.PCA  # noqa: B018


def test_names_of_the_package_in_the_pages_are_there():
    root, wrong = PAGE.parents[1], []
    for page in [*root.glob("[!C]*.md"), *PAGE.parent.glob("*.md")]:  # the changelog names the past
        for name in re.findall(r"(?<![\w/])mnpca(?:\.[A-Za-z_]\w*)+", page.read_text("utf-8")):
            try:
                pkgutil.resolve_name(name)
            except (ImportError, AttributeError):
                wrong.append(f"{page.name}: {name}")
    assert not wrong
