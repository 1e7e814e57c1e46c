"""Words and figures at the top of the report, and the settings at its end."""

import datetime
import importlib.metadata
import platform

import numpy as np

import mnpca

_NO_EDGES = {
    "identity": (
        "Neither networks nor unequal variances describe what is left better than white noise does."
    ),
    "diagonal": (
        "The noise has unequal variances; no network among rows or columns is supported by the "
        "data."
    ),
}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def story(document):
    """Return a few sentences that say what was found."""
    n, p = document["shape"]
    kept = document["scree"]["kept"]
    rows, columns = document["networks"]["rows"], document["networks"]["columns"]
    sentences = [_signal_sentence(n, p, kept), _noise_sentence(document["noise"], rows, columns)]
    beyond = [document["whiteness"][side]["beyond"] for side in ("rows", "columns")]
    sentences.append(
        f"Before the noise model is taken out, {_percent(beyond[0][0])} of the residual's pairs "
        f"of rows and {_percent(beyond[1][0])} of the pairs of columns are correlated beyond three "
        f"standard deviations of white noise; afterwards {_percent(beyond[0][1])} and "
        f"{_percent(beyond[1][1])} (white noise: 0.27%)."
    )
    return sentences


def cards(document, seconds):
    """Return the key figures as (title, figure, remark)."""
    rows, columns = document["networks"]["rows"], document["networks"]["columns"]
    n, p = document["shape"]
    convergence = document["convergence"]
    figures = [
        ["Data", f"{n:,} × {p:,}", "rows × columns"],
        ["Signal", f"rank {document['scree']['kept']}", _rank_remark(document["scree"])],
        ["Row network", f"{rows['n_edges']:,}", _edges_remark(rows)],
        ["Column network", f"{columns['n_edges']:,}", _edges_remark(columns)],
        [
            "Fit",
            "converged" if convergence["converged"] else "not converged",
            counted(convergence["n_iter"], "iteration")
            + ("" if seconds is None else f", {seconds:.1f} s"),
        ],
    ]
    return figures


def conclusions(document):
    """Return what to conclude from each figure, in a sentence or two."""
    scree, whiteness = document["scree"], document["whiteness"]
    white = document["noise"]["white"]  # the verdict of the model check comes first
    figures = {"scores": _scores_words(document["scores"]), "rank": _rank_words(scree)}
    for side, network in document["networks"].items():
        figures[side] = _network_words(side, network)
        left = whiteness[side]["beyond"][1]
        figures[f"white_{side}"] = (
            f"The {side} are as uncorrelated as those of white noise."
            if white or left < 0.01
            else f"Some correlation among {side} is left that the noise model does not hold."
        )
    values = whiteness["values"]
    figures["white_values"] = (
        "Nothing is left that stands out like a component."
        if white or values["largest"][1] < 1.1 * values["edge"]
        else "A direction is left that stands above white noise: try more components."
    )
    return figures


def _scores_words(scores):
    if not scores["mnpca"]:
        return (
            "No component stands clearly above the noise, so nothing tells what PCA shows from "
            "correlated noise."
        )
    ours, theirs = (np.array(scores[name][:2], dtype=float).T for name in ("mnpca", "pca"))
    bases = [np.linalg.qr(x - x.mean(axis=0))[0] for x in (ours, theirs)]
    same = float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)[-1])
    verdict = (
        "so PCA shows the same"
        if same > 0.9
        else "so the noise hides a part of the signal from PCA"
        if same > 0.5
        else "so what PCA shows is mostly correlated or unequal noise"
    )
    return (
        f"The two pictures correlate at {same:.2f} in the direction that they share least, "
        f"{verdict}."
    )


def _rank_words(scree):
    values = scree["generalized"], scree["plain"]
    above, plain = (sum(value > 1 for value in side) for side in values)
    kept, chosen = scree["kept"], _rank_remark(scree)
    words = (
        f"After whitening, {above or 'none'} of the first {len(values[0])} singular values "
        f"{'stands' if above == 1 else 'stand'} above the noise edge; {kept or 'none'} "
        f"{'is' if kept == 1 else 'are'} kept ({chosen})."
    )
    if plain > above:
        words += f" Without whitening {plain} do: such noise looks like signal to PCA."
    return words


def _network_words(side, network):
    """Return what the drawing and the heat map say."""
    if not network["n_edges"]:
        return ""
    if network["within"] is None:
        count = network["n_communities"]
        return (
            f"The joined {side} form {count:,} {'community' if count == 1 else 'communities'}. "
            "Members of one share noise that no component holds."
        )
    within, chance = network["within"]
    follows = "follows" if within > 2 * chance else "does not follow"
    return (
        f"{_percent(within)} of the edges join {side} of one label, against {_percent(chance)} of "
        f"all pairs: the noise {follows} the labels."
    )


def settings(model, scaled):
    """Return the estimator's parameters as text."""
    params = {name: _text(value) for name, value in model.get_params(deep=False).items()}
    return {
        "estimator": type(model).__name__,
        "params": params | {"columns scaled": "yes" if scaled else "no"},
    }


def versions():
    """Return the versions that made the report, and when."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    found = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"date": now, "mnpca": mnpca.__version__, "Python": platform.python_version()} | found


def _signal_sentence(n, p, kept):
    if kept == 0:
        return (
            f"No component of the {n:,} × {p:,} matrix stands clearly above its noise: there is no "
            "low-rank signal to show."
        )
    signal = counted(kept, "component")
    return f"The {n:,} × {p:,} matrix was split into a signal of {signal} and noise."


def _noise_sentence(noise, rows, columns):
    if rows["n_edges"] == columns["n_edges"] == 0:
        equal = set(noise["structures"].values()) == {"identity"}
        return _NO_EDGES["identity" if equal else "diagonal"]
    pairs = " and ".join(
        f"{counted(network['n_edges'], 'pair')} of {side}"
        for side, network in (("rows", rows), ("columns", columns))
        if network["n_edges"]
    )
    rate = rows.get("fdr")
    sure = "" if rate is None else f" (false discovery rate {_percent(rate)})"
    return f"The noise is correlated along {pairs}, given all others{sure}."


def counted(number, thing):
    """Return a number of things in words."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _rank_remark(scree):
    return "as requested" if scree["requested"].isdecimal() else "chosen from the data"


def _edges_remark(network):
    joined = network["n_items"] - network["n_isolated"]
    edges = "edge" if network["n_edges"] == 1 else "edges"
    rate = network.get("fdr")
    sure = "" if rate is None else f" (false discovery rate {_percent(rate)})"
    return f"{edges}{sure}; {joined:,} of {network['n_items']:,} items joined"


def _percent(share):
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"


def _text(value):
    text = "array" if hasattr(value, "shape") else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
