"""The changes that mutation testing tries: one operator or constant at a time.

What is left alone, because no test should notice: annotations, decorators, imports, the keywords
in QUIET, and the changes listed with their reasons in `equivalent_mutants.toml`.
"""

import ast
import copy
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
# Keywords that ask for checks or for speed, not for another result.
QUIET = {
    "strict",
    "check_finite",
    "overwrite_a",
    "overwrite_b",
    "overwrite_c",
    "clean",
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
