"""Mutation testing: change one operator or constant, and see whether a test notices.

    python benchmarks/mutate.py --sample 200 --seed 1000

Every mutant is one syntax-tree change of a file in `model/` or `precision/`. The tests of that
folder run on it in a forked child (nothing is imported twice, no file is changed); a mutant is
killed if they fail or take far longer. Mutants of numba kernels are compiled afresh.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "src/mnpca/model": ["tests/model", "tests/reference"],
    "src/mnpca/precision": ["tests/precision"],
}
BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.MatMult: ast.Sub,
}
COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutator(ast.NodeTransformer):
    """Applies the change with the given number; counts the changes when the number is None."""

    def __init__(self, wanted=None):
        self.wanted = wanted
        self.found = []

    def _offer(self, node, changed, text):
        self.found.append((node.lineno, text))
        return changed if self.wanted == len(self.found) - 1 else node

    def visit_BinOp(self, node):
        """Exchange an arithmetic operator."""
        self.generic_visit(node)
        kind = BINARY.get(type(node.op))
        if kind is None:
            return node
        changed = copy.copy(node)
        changed.op = kind()
        return self._offer(node, changed, f"{type(node.op).__name__} -> {kind.__name__}")

    visit_AugAssign = visit_BinOp

    def visit_Compare(self, node):
        """Move a comparison by one step, or turn it round."""
        self.generic_visit(node)
        kind = COMPARE[type(node.ops[0])]
        changed = copy.copy(node)
        changed.ops = [kind(), *node.ops[1:]]
        return self._offer(node, changed, f"{type(node.ops[0]).__name__} -> {kind.__name__}")

    def visit_BoolOp(self, node):
        """Exchange and / or."""
        self.generic_visit(node)
        changed = copy.copy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return self._offer(node, changed, "and <-> or")

    def visit_UnaryOp(self, node):
        """Drop a sign or a not."""
        self.generic_visit(node)
        return self._offer(node, node.operand, f"drop {type(node.op).__name__}")

    def visit_Constant(self, node):
        """Add one to a number, negate a truth value."""
        if isinstance(node.value, bool):
            changed = not node.value
        elif isinstance(node.value, int | float):
            changed = node.value + 1
        else:
            return node
        return self._offer(node, ast.Constant(changed), f"{node.value} -> {changed}")

    def visit_If(self, node):
        """Turn a condition round."""
        self.generic_visit(node)
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        return self._offer(node, changed, "if -> if not")

    def visit_FunctionDef(self, node):
        """Leave decorators and annotations alone."""
        node.body = [self.visit(statement) for statement in node.body]
        node.args.defaults = [self.visit(value) for value in node.args.defaults]
        node.args.kw_defaults = [v and self.visit(v) for v in node.args.kw_defaults]
        return node

    def visit_AnnAssign(self, node):
        """Leave annotations alone."""
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Import(self, node):
        """Leave imports alone."""
        return node

    visit_ImportFrom = visit_Import


def mutants():
    """List (file, number, line, change) of every possible mutant."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            mutator = Mutator()
            mutator.visit(ast.parse(path.read_text()))
            name = str(path.relative_to(ROOT))
            found += [(name, i, line, text) for i, (line, text) in enumerate(mutator.found)]
    return found


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed syntax tree."""

    def __init__(self, file, number):
        self.path = str(ROOT / file)
        self.module = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
        self.module = self.module.removesuffix(".__init__")
        self.tree = ast.fix_missing_locations(
            Mutator(number).visit(ast.parse(Path(self.path).read_text()))
        )

    def find_spec(self, name, path, target=None):
        """Answer for the mutated module alone."""
        if name != self.module:
            return None
        return importlib.util.spec_from_file_location(
            name,
            self.path,
            loader=self,
            submodule_search_locations=(
                [os.path.dirname(self.path)] if self.path.endswith("__init__.py") else None
            ),
        )

    def exec_module(self, module):
        """Run the changed code."""
        exec(compile(self.tree, self.path, "exec"), module.__dict__)


def tests_of(file):
    """Return the file's own tests, and all tests that should notice a change of it."""
    folder = next(folder for folder in FOLDERS if file.startswith(folder))
    folders = [path for path in FOLDERS[folder] if (ROOT / path).is_dir()]
    own = [
        str(path.relative_to(ROOT))
        for path in (ROOT / folders[0]).glob(f"test_{Path(file).stem.strip('_')}*.py")
    ]
    return own, folders


def run_tests(file, number, log):
    """In the child: run the tests on the mutant; leave with pytest's exit code."""
    if number is not None:
        if "kernels" in file:
            # A cached kernel would hide the change; numba must compile this one.
            os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="mutant-")
        sys.meta_path.insert(0, Finder(file, number))
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    own, everything = tests_of(file)
    with open(log, "w") as out, redirect_stdout(out), redirect_stderr(out):
        # Most mutants fall to the file's own tests, and collecting the others takes longer.
        code = (number is not None and own and pytest.main([*arguments, *own])) or pytest.main(
            [*arguments, *everything]
        )
    os._exit(int(code))


def outcome(file, number, seconds, log):
    """Run one mutant in a fork; return "killed", "survived" or "timeout"."""
    child = os.fork()
    if child == 0:
        try:
            run_tests(file, number, log)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="number of mutants; all if left out")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--skip", default="nothing", help="no files whose path contains this")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this long")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    everything = [m for m in mutants() if options.only in m[0] and options.skip not in m[0]]
    chosen = list(everything)
    random.Random(options.seed).shuffle(chosen)
    # What the tests import besides mnpca is loaded once, before the forks.
    import numba  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.covariance
    import sklearn.decomposition
    import sklearn.utils.estimator_checks  # noqa: F401

    limits, counts, survivors = {}, {"killed": 0, "survived": 0, "timeout": 0}, []
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as scratch:
        for file, number, line, change in chosen[: options.sample]:
            if time.monotonic() > end:
                break
            key = tests_of(file)[1][0]
            if key not in limits:
                begin = time.monotonic()
                if outcome(file, None, 600, f"{scratch}/log") != "survived":
                    sys.exit(
                        "the tests fail without any change:\n" + Path(scratch, "log").read_text()
                    )
                limits[key] = 3 * (time.monotonic() - begin) + 10
            limit = limits[key] + (60 if "kernels" in file else 0)
            result = outcome(file, number, limit, f"{scratch}/log")
            counts[result] += 1
            if result == "survived":
                survivors.append(f"{file}:{line} {change}")
                print("survived", survivors[-1], flush=True)
    tried = sum(counts.values())
    share = (counts["killed"] + counts["timeout"]) / max(tried, 1)
    print(
        json.dumps(
            {"possible": len(everything), "tried": tried, **counts, "share": round(share, 3)}
        )
    )


if __name__ == "__main__":
    main()
