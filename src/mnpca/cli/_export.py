"""The files of an output folder."""

import json
from pathlib import Path

import numpy as np

from mnpca.cli._summary import summarize
from mnpca.diagnostics import item_names, learned_groups, named_rows, shown_rate, tested_edges
from mnpca.interop.networkx import write_graphml
from mnpca.io import write_csv
from mnpca.report import collect, render, save_content, write_text

MODEL_FILE = "model.mnpca"
REPORT_FILE = "report.html"
CONTENT_FILE = "report.json"


def export(
    folder,
    fitted,
    table,
    *,
    source,
    algorithm,
    column_labels=None,
    scaled=False,
    graphml=False,
):
    """Write everything a fit leaves behind; return its summary and the report's document."""
    model, notes = fitted.model, [*table.notes, *fitted.remarks]
    document = collect(
        model,
        table.values,
        labels=table.labels,
        label_name=table.label_name,
        column_labels=column_labels,
        scaled=scaled,
        source=Path(source).name,
        notes=notes,
        seconds=fitted.seconds,
    )
    summary = summarize(
        model, document, data=source, algorithm=algorithm, seconds=fitted.seconds, notes=notes
    )
    known = getattr(model, "row_covariates_", None)
    given = {} if known is None else {"row_covariates": known}
    scores = model.transform(named_rows(model, table.values), **given)
    names = item_names(model, "rows")
    write_scores(
        folder / "scores.csv",
        names,
        scores,
        table.labels,
        table.label_name,
        learned_columns(model, "rows"),
    )
    write_components(folder / "components.csv", model)
    for side, name in (("rows", "row_graph"), ("columns", "col_graph")):
        write_graph(folder / f"{name}.csv", model, side)
        if graphml:
            write_graphml(model, side, folder / f"{name}.graphml", fdr=shown_rate(model))
    write_completed(folder, model)
    model.save(folder / MODEL_FILE)
    save_content(document, folder / CONTENT_FILE)
    write_text(folder / REPORT_FILE, render(document))
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    return summary, document


def component_names(count):
    """Return the headers of score and loading tables."""
    return [f"component_{k + 1}" for k in range(count)]


def write_scores(path, names, scores, labels=None, label_name=None, learned=None):
    """Write a row of scores per sample, with its name and label, and what was learned of it."""
    columns = {} if labels is None else {label_name or "label": [str(label) for label in labels]}
    write_factor(path, names, columns, scores, learned or {})


def write_factor(path, names, columns, factor, learned):
    """Write a row per item: name, more columns, its entries in a factor, and what was learned."""
    entries = dict(zip(component_names(factor.shape[1]), factor.T.tolist(), strict=True))
    columns = {"name": names, **columns, **entries, **learned}
    write_csv(path, list(columns), zip(*columns.values(), strict=True))


def learned_columns(model, side):
    """Return what the learned prior says of every row or column, by name of a table's column."""
    columns = {}
    prior = getattr(model, "priors_", {}).get(side, {})
    if prior.get("groups") is not None:
        columns["learned_group"] = learned_groups(model, side).tolist()
        columns["learned_group_probability"] = prior["groups"].max(axis=1).tolist()
    if prior.get("zero") is not None:
        columns["zero_probability"] = prior["zero"].tolist()
    return columns


def write_components(path, model):
    """Write the loadings, a row per feature, with what was learned of it."""
    loadings = np.asarray(model.components_).T
    names = item_names(model, "columns")
    write_factor(path, names, {}, loadings, learned_columns(model, "columns"))


def write_completed(folder, model):
    """Write the completed matrix and its standard errors, where the data had holes."""
    if getattr(model, "completed_", None) is None:
        return
    header = ["name", *item_names(model, "columns")]
    names = item_names(model, "rows")
    for file, matrix in zip(
        ("completed", "completed_std"), model.impute(return_std=True), strict=True
    ):
        rows = ([name, *values.tolist()] for name, values in zip(names, matrix, strict=True))
        write_csv(folder / f"{file}.csv", header, rows)


def write_graph(path, model, side):
    """Write the edges of a noise network, the strongest first.

    Positions (from 1) stand beside the names, because names may repeat. Where the model has tests,
    the edges are those with the false discovery rate `shown_rate`; otherwise they are the fit's,
    and standard error, p and q are empty.
    """
    names, edges = item_names(model, side), tested_edges(model, side, shown_rate(model))
    values = (
        edges.precision,
        edges.partial_correlation,
        *(edges.standard_error, edges.p, edges.q),
    )
    header = ["name_1", "name_2", "position_1", "position_2", "precision", "partial_correlation"]
    columns = [[""] * len(edges) if each is None else each.tolist() for each in values]
    rows = (
        [names[i], names[j], i + 1, j + 1, *row]
        for i, j, *row in zip(edges.first.tolist(), edges.second.tolist(), *columns, strict=True)
    )
    write_csv(path, [*header, "standard_error", "p", "q"], rows)
