"""Mutation testing: change one operator or constant, and see whether a test notices.

    python benchmarks/mutate.py --only model --seed 1000
    python benchmarks/mutate.py --only kernels --interpreted --longest 3

A mutant is one change of the syntax tree of a file in `model/` or `precision/`. pytest collects
the tests of that folder once. Then every mutant gets a fork of that process, in which the changed
function replaces the original one (no file is changed), and the tests that call the function run
until one fails, the quickest first. A mutant is killed if a test fails or takes far longer than
without the change. Changes outside functions are imported afresh. Compiled kernels can only be
changed with `--interpreted`, which switches numba's compiler off.

What is left alone, because no test should notice: annotations, decorators, imports, the keywords
in QUIET, and the changes listed with their reasons in `equivalent_mutants.toml`.
"""

import argparse
import ast
import copy
import gc
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import tomllib
import traceback
import types
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
TESTS = {
    "model": ["tests/model"],
    "precision": ["tests/precision", "tests/engines/test_solvers.py"],
}
# Keywords that ask for checks or for speed, not for another result.
QUIET = {
    "strict",
    "check_finite",
    "overwrite_a",
    "overwrite_b",
    "copy",
    "order",
    "stacklevel",
    "hermitian",
    "directed",
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


class Mutant(NamedTuple):
    """A change: its file, number within the file, line, what it does, and the function it is in.

    `place` counts the same change in the same line.
    """

    file: str
    number: int
    line: int
    change: str
    function: str | None
    place: int


class Mutator(ast.NodeTransformer):
    """Applies the change with the given number; lists (line, change, function) of all."""

    def __init__(self, wanted=None):
        self.wanted = wanted
        self.found = []
        self.scope = []  # names of the classes and functions around a node
        self.function = None  # the outermost function around it

    def _offer(self, node, changed, text):
        self.found.append((node.lineno, text, self.function))
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
        node.args.defaults = [self.visit(value) for value in node.args.defaults]
        node.args.kw_defaults = [v and self.visit(v) for v in node.args.kw_defaults]
        outer = self.function
        self.scope.append(node.name)
        self.function = outer or ".".join(self.scope)
        node.body = [self.visit(statement) for statement in node.body]
        self.scope.pop()
        self.function = outer
        return node

    def visit_ClassDef(self, node):
        """Leave decorators alone."""
        self.scope.append(node.name)
        node.body = [self.visit(statement) for statement in node.body]
        self.scope.pop()
        return node

    def visit_AnnAssign(self, node):
        """Leave annotations alone, also those that have a name."""
        if not ast.unparse(node.annotation).endswith("TypeAlias"):
            node.value = node.value and self.visit(node.value)
        return node

    def visit_keyword(self, node):
        """Leave alone what no result depends on."""
        return node if node.arg in QUIET else self.generic_visit(node)

    def visit_Import(self, node):
        """Leave imports alone."""
        return node

    visit_ImportFrom = visit_Import


def mutants(part):
    """List every possible mutant of a folder."""
    found = []
    for path in sorted((ROOT / "src/mnpca" / part).rglob("*.py")):
        mutator = Mutator()
        mutator.visit(ast.parse(path.read_text()))
        name = str(path.relative_to(ROOT))
        seen = Counter()
        for i, (line, change, function) in enumerate(mutator.found):
            found.append(Mutant(name, i, line, change, function, seen[line, change]))
            seen[line, change] += 1
    return found


def mutated(mutant):
    """Return the compiled code of a file with the change."""
    tree = Mutator(mutant.number).visit(ast.parse((ROOT / mutant.file).read_text()))
    return compile(ast.fix_missing_locations(tree), str(ROOT / mutant.file), "exec")


def functions_within(code):
    """Yield the code objects in a code object."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from functions_within(constant)


def functions_by_file():
    """Find every function of the package that exists now."""
    found = {}
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType):
            found.setdefault(thing.__code__.co_filename, []).append(thing)
    return found


def replace_functions(mutant, functions):
    """Give every function of the file the code of the changed one."""
    changed = {(c.co_qualname, c.co_firstlineno): c for c in functions_within(mutated(mutant))}
    for function in functions.get(str(ROOT / mutant.file), []):
        code = function.__code__
        function.__code__ = changed[code.co_qualname, code.co_firstlineno]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with its change."""

    def __init__(self, mutant):
        self.path = str(ROOT / mutant.file)
        self.code = mutated(mutant)
        name = mutant.file.removeprefix("src/").removesuffix(".py").replace("/", ".")
        self.module = name.removesuffix(".__init__")

    def find_spec(self, name, path, target=None):
        """Answer for the mutated module alone."""
        if name != self.module:
            return None
        folder = [os.path.dirname(self.path)] if self.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=folder
        )

    def exec_module(self, module):
        """Run the changed code."""
        exec(self.code, module.__dict__)


ARGUMENTS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "-s", "-x"]


def run_afresh(mutant, names):
    """Import everything again with a change outside functions, and run the tests."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("mnpca", "tests")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(mutant))
    return int(pytest.main([*ARGUMENTS, *names]))


def run_items(session, items):
    """Run collected tests until one fails; return 1 if one did."""
    for i, item in enumerate(items):
        following = items[i + 1] if i + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


# Exit status of a fork in which not the tests failed but this program.
BROKEN = 99


def forked(work, seconds):
    """Run work() in a fork, silently; return its exit status, None if it takes too long.

    `seconds` are of processor time, so that a busy machine is no hang; asleep it may be for longer.
    """
    child = os.fork()
    if child == 0:
        status = BROKEN
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(min(int(status), BROKEN))
    deadline = time.monotonic() + 30 * seconds + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if os.waitstatus_to_exitcode(status) == BROKEN:
                raise RuntimeError("the fork failed; were files changed meanwhile?")
            over = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (
                signal.SIGXCPU,
                signal.SIGKILL,
            )
            return None if over else status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class Baseline:
    """Runs every test without a change: how long it takes, and which functions it calls."""

    def __init__(self, session, part, kept):
        """Leave out tests that the file `kept` knows."""
        folder = str(ROOT / "src/mnpca" / part)
        self.notes = json.loads(kept.read_text()) if kept and kept.exists() else {}
        items = [item for item in session.items if item.nodeid not in self.notes]
        with tempfile.TemporaryDirectory() as scratch:
            notes = Path(scratch, "notes.json")
            if forked(lambda: self._record(session, items, folder, notes), 1200) != 0:
                tail = notes.read_text() if notes.exists() else "nothing was recorded"
                sys.exit(f"the tests fail or hang without any change: {tail[-500:]}")
            self.notes |= json.loads(notes.read_text())
        if kept:
            kept.write_text(json.dumps(self.notes))

    @staticmethod
    def _record(session, items, folder, notes):
        called, record = set(), {}
        notes.write_text("{}")

        def trace(frame, event, argument):
            code = frame.f_code
            if code.co_filename.startswith(folder):
                called.add(f"{code.co_filename}:{code.co_qualname}")

        for item in items:
            called.clear()
            begin = time.process_time()
            sys.settrace(trace)
            run_items(session, [item])
            sys.settrace(None)
            seconds = time.process_time() - begin
            record[item.nodeid] = {"seconds": seconds, "calls": sorted(called)}
            notes.write_text(json.dumps(record))
            if session.testsfailed:
                return 1
        return 0

    def seconds(self, item):
        """Return how long a test takes."""
        return self.notes[item.nodeid]["seconds"]

    def choose(self, session, mutant, longest):
        """Return the tests that may notice a change, the quickest first."""
        name = f"{ROOT / mutant.file}:{mutant.function or ''}"
        chosen = [
            item
            for item in session.items
            if self.seconds(item) <= longest
            and any(
                call == name or (mutant.function is None and call.startswith(name))
                for call in self.notes[item.nodeid]["calls"]
            )
        ]
        return sorted(chosen, key=self.seconds)


class Mutation:
    """The pytest plugin that runs mutants instead of tests."""

    def __init__(self, part, options):
        self.part, self.options = part, options
        self.counts = Counter()

    def pytest_configure(self, config):
        """Let failing examples be as they are: not made smaller, the same each time."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutate", phases=phases, derandomize=True, database=None)
        settings.load_profile("mutate")

    def pytest_runtestloop(self, session):
        """Run the baseline, then every mutant."""
        baseline = Baseline(session, self.part, self.options.baseline)
        slow = [item.nodeid for item in session.items if baseline.seconds(item) > 5]
        print(f"\n{len(session.items)} tests, over 5 s: {slow}", flush=True)
        known = Known(self.options.results)
        self.functions = functions_by_file()
        gc.freeze()
        end = time.monotonic() + 60 * self.options.minutes
        for mutant in self.chosen():
            if time.monotonic() > end:
                print("out of time", flush=True)
                break
            result = known.verdict(mutant) or self.verdict(session, baseline, mutant)
            known.note(mutant, result)
            self.counts[result] += 1
            if result == "survived":
                print(f"survived {mutant.file}:{mutant.line} {mutant.change}", flush=True)
        return True

    def run_changed(self, session, items, mutant):
        """Run collected tests with a changed function."""
        replace_functions(mutant, self.functions)
        return run_items(session, items)

    def chosen(self):
        """Return the mutants to run."""
        everything = [
            mutant
            for mutant in mutants(self.part)
            if self.options.only in mutant.file
            and ("_kernels" in mutant.file) == self.options.interpreted
        ]
        self.possible = len(everything)
        random.Random(self.options.seed).shuffle(everything)
        return everything[: self.options.sample]

    def verdict(self, session, baseline, mutant):
        """Run the tests on one mutant."""
        items = baseline.choose(session, mutant, self.options.longest)
        if not items:
            return "survived"
        limit = 5 * sum(map(baseline.seconds, items)) + 10
        if mutant.function is None:
            names = [item.nodeid for item in items]
            status = forked(lambda: run_afresh(mutant, names), limit + 20)
        else:
            status = forked(lambda: self.run_changed(session, items, mutant), limit)
        return "timeout" if status is None else "killed" if status else "survived"


class Known:
    """Verdicts that need no run: equivalent mutants, and those killed in an earlier run."""

    def __init__(self, results):
        with EQUIVALENT.open("rb") as file:
            listed = tomllib.load(file)["mutant"]
        self.equivalent = {(entry["file"], entry["line"], entry["change"]) for entry in listed}
        self.results, self.killed = results, set()
        if results is not None and results.exists():
            entries = map(json.loads, results.read_text().splitlines())
            self.killed = {e["key"] for e in entries if e["verdict"] in ("killed", "timeout")}

    def verdict(self, mutant):
        """Return the verdict, or None."""
        text = self._text(mutant)
        name = mutant.file.removeprefix("src/mnpca/")
        if (name, text, mutant.change) in self.equivalent:
            return "equivalent"
        return "killed" if self._key(mutant) in self.killed else None

    def note(self, mutant, verdict):
        """Write a verdict down."""
        if self.results is not None and self._key(mutant) not in self.killed:
            with self.results.open("a") as file:
                entry = {"key": self._key(mutant), "verdict": verdict, "text": self._text(mutant)}
                file.write(json.dumps(entry) + "\n")

    @staticmethod
    def _text(mutant):
        return (ROOT / mutant.file).read_text().splitlines()[mutant.line - 1].strip()

    def _key(self, mutant):
        return f"{mutant.file}: {self._text(mutant)}: {mutant.change} ({mutant.place})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=list(TESTS))
    parser.add_argument("--sample", type=int, help="number of mutants; all if left out")
    parser.add_argument("--seed", type=int, default=1000, help="of their order")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--interpreted", action="store_true", help="the kernels, not compiled")
    parser.add_argument("--longest", type=float, default=1e9, help="seconds of a test, at most")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--results", type=Path, help="file of verdicts; killed ones stay killed")
    parser.add_argument("--baseline", type=Path, help="file of test times and calls, for reuse")
    options = parser.parse_args()
    options.results = options.results and options.results.resolve()
    options.baseline = options.baseline and options.baseline.resolve()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    if options.interpreted:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    mutation = Mutation(options.part, options)
    pytest.main([*ARGUMENTS, *TESTS[options.part]], plugins=[mutation])
    counts = mutation.counts
    tried = sum(counts.values()) - counts["equivalent"]
    share = (counts["killed"] + counts["timeout"]) / max(tried, 1)
    print(json.dumps({"possible": mutation.possible, **counts, "share": round(share, 3)}))


if __name__ == "__main__":
    main()
