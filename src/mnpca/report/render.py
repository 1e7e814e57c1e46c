"""From the report's document to words, and to HTML.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

import base64
import hashlib
import json
from importlib import resources

from mnpca.persistence import atomic_write

#: Version of the document; a report is only rendered from one it knows.
SCHEMA = 2
_SCRIPTS = ("theme.js", "dom.js", "charts.js", "scatter.js", "network.js", "main.js")


def render(document):
    """Return the HTML of a document made by `collect`.

    Examples
    --------
    >>> mnpca.report.render(mnpca.report.collect(model, X))[:15]
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
    data = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":  # none can end the script element that holds the data
        data = data.replace(character, f"\\u{ord(character):04x}")
    return page.render(
        document=document,
        style=(assets / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=f"sha256-{digest}",
        data=data,
    )


def save_content(document, path):
    """Keep a report's document, so that the report can be rendered again.

    Examples
    --------
    >>> mnpca.report.save_content(mnpca.report.collect(model, X), "report.json")
    """
    write_text(path, json.dumps(document, allow_nan=False, ensure_ascii=False))


def load_content(path):
    """Read a document that `save_content` wrote.

    Examples
    --------
    >>> document = mnpca.report.collect(model, X)
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


def story(document):
    """Return a few sentences that say what was found."""
    (n, p), kept = document["shape"], document["scree"]["kept"]
    signal = (
        f"The {n:,} × {p:,} matrix was split into a signal of {counted(kept, 'component')} and "
        "noise."
        if kept
        else f"No component of the {n:,} × {p:,} matrix stands clearly above its noise: there is "
        "no low-rank signal to show."
    )
    rows, columns = (document["whiteness"][side]["beyond"] for side in ("rows", "columns"))
    return [
        signal,
        _noise_sentence(document),
        f"Before the noise model is taken out, {_percent(rows[0])} of the residual's pairs of rows "
        f"and {_percent(columns[0])} of the pairs of columns are correlated beyond three standard "
        f"deviations of white noise; afterwards {_percent(rows[1])} and {_percent(columns[1])} "
        "(white noise: 0.27%).",
    ]


def _noise_sentence(document):
    networks = {side: document["networks"][side] for side in ("rows", "columns")}
    pairs = " and ".join(
        f"{counted(network['n_edges'], 'pair')} of {side}"
        for side, network in networks.items()
        if network["n_edges"]
    )
    if not pairs and set(document["noise"]["structures"].values()) == {"identity"}:
        return (
            "Neither networks nor unequal variances describe what is left better than white noise "
            "does."
        )
    if not pairs:
        return (
            "The noise has unequal variances; no network among rows or columns is supported by "
            "the data."
        )
    rate = networks["rows"].get("fdr")
    sure = "" if rate is None else f" (false discovery rate {_percent(rate)})"
    return f"The noise is correlated along {pairs}, given all others{sure}."


def cards(document, seconds):
    """Return the key figures as (title, figure, remark)."""
    (n, p), scree, fit = document["shape"], document["scree"], document["convergence"]
    chosen = "as requested" if scree["requested"].isdecimal() else "chosen from the data"
    took = "" if seconds is None else f", {seconds:.1f} s"
    figures = [
        ["Data", f"{n:,} × {p:,}", "rows × columns"],
        ["Signal", f"rank {scree['kept']}", chosen],
    ]
    for side, title in (("rows", "Row network"), ("columns", "Column network")):
        network = document["networks"][side]
        count, items = network["n_edges"], network["n_items"]
        rate, joined = network.get("fdr"), items - network["n_isolated"]
        sure = "" if rate is None else f" tested at a false discovery rate of {_percent(rate)}"
        remark = f"edge{'s' * (count != 1)}{sure}; {joined:,} of {items:,} items joined"
        figures.append([title, f"{count:,}", remark])
    converged = "converged" if fit["converged"] else "not converged"
    return [*figures, ["Fit", converged, counted(fit["n_iter"], "iteration") + took]]


def counted(number, thing):
    """Return a number of things in words."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _percent(share):
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"
