"""Scree, whiteness of the residual, and convergence."""

import numpy as np

from mnpca.diagnostics import correlations, marchenko_pastur, scree, whiten
from mnpca.report._numbers import short

_BINS = 60


def scree_section(model, X):
    """Return the leading singular values in units of the noise edge."""
    values = scree(model, X)
    return {
        "generalized": short(values.generalized),
        "plain": short(values.plain),
        "kept": values.n_components,
        "requested": str(model.get_params(deep=False).get("n_components")),
        "trials": [
            {"rank": int(trial["n_components"]), "evidence": short(trial["evidence"], 7)}
            for trial in getattr(model, "rank_path_", None) or []
        ],
    }


def whiteness_section(model, X):
    """Return histograms of the residual's correlations and singular values, before and after."""
    residual = X - model.denoise()
    whitened = whiten(residual, model.row_precision_, model.col_precision_)
    before, after = correlations(residual), correlations(whitened)
    section = {"shape": list(after.shape), "thinned": after.shape != X.shape}
    for side, other in (("rows", after.shape[1]), ("columns", after.shape[0])):
        attribute = "row_correlations" if side == "rows" else "column_correlations"
        section[side] = _correlation_histograms(
            getattr(before, attribute), getattr(after, attribute), 1 / np.sqrt(other)
        )
        section[side]["beyond"] = short([before.share_above(side), after.share_above(side)], 3)
    section["values"] = _value_histograms(
        before.singular_values, after.singular_values, after.shape
    )
    return section


def noise_section(model):
    """Return what the estimator itself says about its noise model, where it does."""
    noise, check = getattr(model, "noise_", None), getattr(model, "model_check_", None)
    return {
        "structures": {} if noise is None else {name: s["structure"] for name, s in noise.items()},
        "why": {} if noise is None else {name: side["why"] for name, side in noise.items()},
        "choice": getattr(model, "choice_", None),
        "white": None if check is None else check["white"],
        "advice": None if check is None else str(check["advice"]),
    }


def convergence_section(model):
    """Return the objective's history."""
    return {
        "objective": short(np.asarray(getattr(model, "objective_history_", [])), 7),
        "n_iter": int(getattr(model, "n_iter_", 0)),
        "converged": bool(getattr(model, "converged_", True)),
        "starts": [
            {
                "name": str(start["name"]),
                "n_components": int(start["n_components"]),
                "evidence": short(start["evidence"], 7),
                "row_edges": int(start["n_row_edges"]),
                "col_edges": int(start["n_col_edges"]),
            }
            for start in getattr(model, "candidates_", None) or []
        ],
    }


def _correlation_histograms(before, after, spread):
    limit = min(1.0, 8 * spread)
    bins = np.linspace(-limit, limit, _BINS + 1)
    at = np.linspace(-limit, limit, 121)
    normal = np.exp(-((at / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
    return _histograms(before, after, bins) | {"at": short(at), "law": short(normal)}


def _value_histograms(before, after, shape):
    edge = float(np.sum(np.sqrt(shape)))
    top = min(1.05 * max(before[0], after[0], edge), 2.5 * edge)
    at = np.linspace(0, top, 181)
    law = marchenko_pastur(at, shape)
    bins = int(np.clip(len(after) // 5, 10, _BINS))
    return _histograms(before, after, np.linspace(0, top, bins + 1)) | {
        "at": short(at),
        "law": short(law),
        "edge": short(edge),
        "largest": short([before[0], after[0]]),
        "beyond": [int(np.sum(before > 1.02 * edge)), int(np.sum(after > 1.02 * edge))],
    }


def _histograms(before, after, bins):
    # Values beyond the picture are counted in its last bars.
    heights = [
        np.histogram(np.clip(values, bins[0], bins[-1]), bins, density=True)[0]
        if len(values)
        else np.zeros(len(bins) - 1)
        for values in (before, after)
    ]
    return {"bins": short(bins), "before": short(heights[0]), "after": short(heights[1])}
