"""Write the results of a folder into pages: ``python -m reproduction.document results``.

A page holds its text; between ``<!-- results: NAME ... -->`` and ``<!-- end -->`` stands what
this module writes, so a new run of the experiments needs one command to reach the pages.
"""

import argparse
import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

import mnpca
from reproduction.catalog import EXPERIMENTS
from reproduction.deviations import deviations
from reproduction.present import term_pairs
from reproduction.store import RESULTS, ResultStore
from reproduction.tables import averages, beside_paper, heading, markdown

#: All tables, and the conclusions.
PAGES = (Path("reproduction/tables.md"), Path("docs/reproduction.md"))
_BLOCK = re.compile(r"(<!-- results: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text, store):
    """Return the page's text with every block written anew."""
    return _BLOCK.sub(lambda m: m[1] + _block(m[2].split(), store) + "\n" + m[3], text)


def _block(words, store):
    """Write one block; its words are a target, the kind of cells, a metric, digits, methods.

    Digits and methods may be left out. "deviations" in place of the digits: where we differ from
    the paper, and why.
    """
    if words == ["machine"]:
        return _machine()
    target, kind, *rest = words
    wanted = EXPERIMENTS[target].cells(False, True)
    cells = [cell for cell in wanted if cell.experiment == kind and cell in store]
    if target == "terms":
        return _terms(store, cells)
    metric, how, methods = rest[0], rest[1] if rest[1:] else "2", rest[2:]
    if methods:
        cells = [cell for cell in cells if cell.method in methods]
    # The paper's figures stand beside its own data and its own protocol.
    table = "" if kind in ("real-nested", "small") else target
    both = beside_paper(averages(store, cells, (metric,)), table)
    if both.empty:
        return "Not computed yet."
    if how == "deviations":
        return deviations(both)
    return markdown(both, metric, int(how))


def _machine():
    today = datetime.now(UTC).date().isoformat()
    return (
        f"Written on {today} with mnpca {mnpca.__version__}, Python {platform.python_version()}, "
        f"on {os.cpu_count()} cores ({platform.machine()})."
    )


def _terms(store, cells):
    lines = []
    for cell in cells:
        pairs = ", ".join(term_pairs(store, cell)[:20])
        edges = store.metrics(cell)["edges"]
        lines.append(f"- {heading(cell.method)}, {edges:.0f} edges: {pairs}")
    return "\n".join(lines) or "Not computed yet."


def main(arguments=None):
    """Fill the pages from the results."""
    parser = argparse.ArgumentParser(description="Write results into Markdown pages.")
    parser.add_argument("results", type=Path, help="folder that the reproduction wrote")
    parser.add_argument("pages", type=Path, nargs="*", default=PAGES, metavar="page")
    options = parser.parse_args(arguments)
    if not (options.results / RESULTS).is_file():
        parser.error(f"there is no {RESULTS} in {str(options.results)!r}.")
    store = ResultStore(options.results)
    for page in options.pages:
        page.write_text(fill(page.read_text(encoding="utf-8"), store), encoding="utf-8")


if __name__ == "__main__":
    main()
