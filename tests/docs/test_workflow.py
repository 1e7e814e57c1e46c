"""What is said twice about the project is said alike: workflow and Makefile, recipe and package."""

import html
import re
import runpy
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
JOBS = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())["jobs"]


def commands(job):
    """The commands of a job, in order."""
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def makefile():
    """Recipes by target, without the environment's folder, and what each target needs."""
    recipes, needs, targets = {}, {}, []
    for line in (ROOT / "Makefile").read_text().splitlines():
        if line.startswith("\t"):
            for target in targets:
                recipes.setdefault(target, []).append(line.strip().replace("$(BIN)/", ""))
        elif found := re.fullmatch(r"([\w -]+):(?!=)(.*)", line):
            targets = found[1].split()
            for target in targets:
                needs.setdefault(target, []).extend(found[2].split())
    return recipes, needs


def test_linux_and_macos_run_what_a_change_must_pass():
    systems = {entry["os"].split("-")[0] for entry in JOBS["unix"]["strategy"]["matrix"]["include"]}
    assert systems == {"ubuntu", "macos"}
    assert commands("unix") == [".ci/run"]


def test_windows_runs_the_commands_of_make_check():
    recipes, needs = makefile()
    assert "make check" in (ROOT / ".ci/run").read_text().splitlines()
    later = [word for word in recipes["check"][0].split() if word in recipes]
    wanted = [
        command
        for target in [*needs["check"], *later]
        for command in recipes[target]
        if not command.startswith("@echo")
    ]
    assert len(wanted) >= 7
    assert commands("windows")[1 : 1 + len(wanted)] == wanted
    threads = {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}
    assert threads.items() <= JOBS["windows"]["env"].items()


def test_windows_builds_the_wheel_and_runs_its_command():
    script = (ROOT / ".ci/run").read_text()
    wheel = "\n".join(commands("windows")[-4:])
    for part in ("-m build --wheel --outdir", "-m venv", ".whl", "[app]", "demo --output"):
        assert part in script, part
        assert part in wheel, part


def test_pre_commit_runs_what_lint_and_types_run():
    recipes, _ = makefile()
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    wanted = [command.removesuffix(" .") for command in recipes["lint"] + recipes["types"]]
    assert [hook.removeprefix(".venv/bin/") for hook in hooks] == wanted


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = yaml.safe_load((ROOT / "conda/meta.yaml").read_text())
    assert recipe["package"]["version"] == PROJECT["version"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    needed = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["app"]
    wanted = {requirement.replace(">=", " >=") for requirement in needed}
    given = {
        name.replace("matplotlib-base", "matplotlib") for name in recipe["requirements"]["run"]
    }
    assert given == wanted | {f"python {PROJECT['requires-python']}"}
    entry = recipe["build"]["entry_points"]
    assert entry == [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]


def test_the_citation_has_the_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


def test_the_badges_say_what_the_package_says():
    picture = (ROOT / "docs/_static/badges.svg").read_text()
    said = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)", picture)]
    assert said == ["license", PROJECT["license"], "Python", PROJECT["requires-python"]]


def test_what_the_pages_link_to_is_there():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            place = page.parent / target
            if target.startswith("gallery/plot_"):
                place = ROOT / "examples" / f"{Path(target).name}.py"
            generated = target.startswith(("gallery/index", "api/generated/"))
            assert "://" in target or generated or place.exists(), f"{page.name}: {target}"


def test_formulas_are_set_without_a_network():
    if find_spec("sphinx-mathjax-offline") is None:
        pytest.skip("needs sphinx-mathjax-offline")
    conf = runpy.run_path(str(ROOT / "docs/conf.py"))
    shipped = {Path(path).name: Path(path) for path in conf["html_static_path"]}
    assert shipped[conf["mathjax_path"]].is_file()
