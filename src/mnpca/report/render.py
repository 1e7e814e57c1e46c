"""From the report's document to HTML."""

import base64
import hashlib
import json
from importlib import resources

from mnpca.persistence import atomic_write
from mnpca.report.content import SCHEMA, collect

_SCRIPTS = ("theme.js", "dom.js", "charts.js", "scatter.js", "network.js", "main.js")


def write_report(model, X, path, **details):
    """Write the report of a fit as one HTML file.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators.
    X : array-like of shape (n, p)
        The training data.
    path : path-like
        Where to write; an existing file is replaced.
    **details
        See `collect`: labels, label_name, source, notes, ...

    Returns
    -------
    dict
        The report's document.

    Examples
    --------
    >>> import os, tempfile
    >>> from mnpca import GeneralizedPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.report import write_report
    >>> data = make_paper_small(c=8, seed=0, n_samples=60, n_features=30)
    >>> model = GeneralizedPCA(n_components=2).fit(data.Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     document = write_report(model, data.Y, path, labels=data.labels)
    ...     os.path.getsize(path) < 8e6
    True
    """
    document = collect(model, X, **details)
    write_text(path, render(document))
    return document


def render(document):
    """Return the HTML of a document made by `collect`.

    Examples
    --------
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> model = mnpca.GeneralizedPCA(2, col_metric=data.col_precision).fit(data.Y)
    >>> mnpca.report.render(mnpca.report.collect(model, data.Y))[:15]
    '<!doctype html>'
    """
    return render_page("report.html.j2", _known(document), *_SCRIPTS)


def render_page(template, document, *scripts):
    """Return one HTML file with its style, scripts and data.

    Names from the data reach the page as JSON and are shown as text; the page's policy lets no
    script run but the report's own and no address be loaded.
    """
    from jinja2 import Environment

    assets = resources.files("mnpca.report") / "assets"
    script = "\n".join((assets / name).read_text(encoding="utf-8") for name in scripts)
    script = f"(function () {{\n'use strict';\n{script}\n}})();"
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        (assets / template).read_text(encoding="utf-8")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page.render(
        document=document,
        style=(assets / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=f"sha256-{digest}",
        data=_embeddable(document),
    )


def save_content(document, path):
    """Keep a report's document, so that the report can be rendered again.

    Examples
    --------
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> model = mnpca.GeneralizedPCA(2, col_metric=data.col_precision).fit(data.Y)
    >>> mnpca.report.save_content(mnpca.report.collect(model, data.Y), "report.json")
    """
    write_text(path, json.dumps(document, allow_nan=False, ensure_ascii=False))


def load_content(path):
    """Read a document that `save_content` wrote.

    Examples
    --------
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> model = mnpca.GeneralizedPCA(2, col_metric=data.col_precision).fit(data.Y)
    >>> document = mnpca.report.collect(model, data.Y)
    >>> mnpca.report.save_content(document, "report.json")
    >>> mnpca.report.load_content("report.json") == document
    True
    """
    with open(path, encoding="utf-8") as stream:
        return _known(json.load(stream))


def _known(document):
    """Return a document, if it is one of this version."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"not a report document of schema {SCHEMA}")
    return document


def _embeddable(document):
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def write_text(path, text):
    """Write a text file whole or not at all.

    Examples
    --------
    >>> from mnpca.report import write_text
    >>> write_text("note.txt", "one line")
    """
    # Lone surrogates, as broken file names and cells can hold, become question marks.
    data = text.encode("utf-8", errors="replace")
    with atomic_write(path) as stream:
        stream.write(data)
