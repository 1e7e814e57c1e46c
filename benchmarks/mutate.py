"""Mutation testing: change one operator or constant, and see whether a test notices.

    python benchmarks/mutate.py model --seed 1000
    python benchmarks/mutate.py precision --interpreted

A mutant is one change of the syntax tree of a file in `model/` or `precision/`. pytest collects
the tests of that folder once. Then every mutant gets a fork of that process, in which the changed
function replaces the original one (no file is changed), and the tests that call the function run
until one fails, the quickest first. A mutant is killed if a test fails or takes far longer than
without the change. Changes outside functions are imported afresh. Compiled kernels can only be
changed with `--interpreted`, which switches numba's compiler off and runs the tests that are quick
without it. `mutants.py` says what is changed.
"""

import argparse
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
import traceback
import types
from collections import Counter
from pathlib import Path

import pytest
from mutants import ROOT, Known, mutants, mutated

TESTS = {
    "model": ["tests/model"],
    "precision": ["tests/precision", "tests/engines/test_solvers.py"],
}
# Without numba's compiler the others would take hours.
KERNEL_TESTS = [
    f"tests/precision/test_{name}.py"
    for name in ("kernels", "warm_kernels", "descent", "near", "screening")
]


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
        if type(thing) is types.FunctionType:  # isinstance would ask lazy modules
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


ARGUMENTS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "-s"]


def run_afresh(mutant, names):
    """Import everything again with a change outside functions, and run the tests."""
    for name, module in list(sys.modules.items()):
        # Tests too, whatever pytest calls them: they hold on to what they have imported.
        if (getattr(module, "__file__", None) or "").startswith((f"{ROOT}/src", f"{ROOT}/tests")):
            del sys.modules[name]
    sys.meta_path.insert(0, Finder(mutant))
    return int(pytest.main([*ARGUMENTS, "-x", *names]))


def run_items(session, items):
    """Run collected tests until one fails; return 1 if one did."""
    for i, item in enumerate(items):
        following = items[i + 1] if i + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


# Tests that run once before the first fork, in seconds.
LOADING = 0.5
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
        self.possible = 0

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
        # Compiled kernels that are loaded here need not be loaded in every fork.
        run_items(session, [i for i in session.items if baseline.seconds(i) < LOADING])
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
    arguments = [*ARGUMENTS, *(KERNEL_TESTS if options.interpreted else TESTS[options.part])]
    if options.interpreted:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        # Compiled code wraps integers round and subtracts infinities in silence.
        arguments += ["-W", "ignore::RuntimeWarning"]
    mutation = Mutation(options.part, options)
    pytest.main(arguments, plugins=[mutation])
    counts = mutation.counts
    tried = sum(counts.values()) - counts["equivalent"]
    share = (counts["killed"] + counts["timeout"]) / max(tried, 1)
    print(json.dumps({"possible": mutation.possible, **counts, "share": round(share, 3)}))


if __name__ == "__main__":
    main()
