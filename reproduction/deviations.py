"""Where our figures of table 5 differ from the paper's by more than a few points, and why."""

import numpy as np

from reproduction.real_sets import REAL_SETS

#: Points that a figure may differ before it is listed.
POINTS = 3.0

#: What a difference comes from, by a name short enough for a table.
REASONS = {
    "one tuning": "The scores are PCA's, each axis rescaled at most. The paper's own columns with "
    "PCA's scores, PCA and linear kernel PCA, differ by up to 13.9 points (errata, 10): this is "
    "the luck of the one random search that tunes the machines of a figure.",
    "rotation": "Independent components are PCA's whitened scores, rotated, and a Gaussian kernel "
    "sees distances alone: a machine on them does as well as one on the whitened scores. Ours "
    "does. The paper's figures are mostly far below its own PCA, some of them below chance; which "
    "scores it had we do not know.",
    "width": "The kernel's width (Gaussian) or degree (polynomial) is not in the paper; ours are "
    "those that the usual toolbox recommends. On standardized features a Gaussian of width 1 makes "
    "nearly every row an island, and what is left depends on details.",
    "likelihood": "GPLVM's likelihood has many local minima; ours starts from PCA's scores, has "
    "another optimizer, and beyond 500 rows is fitted to a choice of them.",
    "convex": "The paper's figure is that of gradient steps that stop after 500 rounds, ours that "
    "of the convex method, which has other minima.",
    "metric": "The window of a Laplacian follows the density of the network that MN-PCA finds, and "
    "ours is not quite the paper's network; the smoothing metric is nearly singular.",
    "isotropic": "The set is a full grid: its covariance is a multiple of the identity, every "
    "plane is a principal plane, and rounding chooses (errata, 11). The two figures are two draws.",
    "coding": "Every method of the paper stays within 3 points of the 70% that the larger class "
    "alone gives. Each coding of the 13 categorical features that we tried gives PCA 75 to 77%.",
    "rows": "Which 5000 of the 14,980 rows the paper took is not known.",
    "few rows": "A few rows decide: tae has 151, of them 45 repeated; four of zoo's seven classes "
    "have ten rows at most; glass has 214 rows in six classes. Other folds for the tuning move our "
    "figures by up to 1.6 points (tae) and 1.0 (zoo), and the paper's standard deviation is up to "
    "5. That does not explain zoo's 12 points; we found no other reason.",
    "fit rank": "With rank 2 in the rounds, as in the published script, the program comes to 75.7; "
    "the row of the table has rank k, as the paper's text (errata, 12).",
}

_BY_PAIR = {
    ("MN-PCA-program", "3sources"): "fit rank",
    ("LikelihoodMNPCA", "3sources"): "fit rank",
    ("ICA", "tae"): "few rows",
}
# Data that are not the paper's, or that do not determine the plane.
_OTHER_DATA = {"balance-scale": "isotropic", "german": "coding", "eeg-eye": "rows"}
_NOT_A_PLANE = ("KPCA-gau", "KPCA-pol")
_SMALL = ("tae", "zoo", "glass")
_BY_METHOD = {
    "ICA": "rotation",
    "KPCA-gau": "width",
    "KPCA-pol": "width",
    "GPLVM": "likelihood",
    "PPCA": "one tuning",
    "KPCA-lin": "one tuning",
    "WassersteinMNPCA": "convex",
    "GPCA-LL": "metric",
    "GPCA-LS": "metric",
    "GPCA-SL": "metric",
    "GPCA-SS": "metric",
}

# Methods whose own reason holds on every set.
_EVERYWHERE = tuple(method for method in _BY_METHOD if method != "GPLVM")


def reason(method, data):
    """Return the name of the reason why a method's figure on a set differs, or None.

    Other data go before what is peculiar to a method, and that before the luck of a small set.
    """
    if (method, data) in _BY_PAIR:
        return _BY_PAIR[method, data]
    if data in _OTHER_DATA and method not in _NOT_A_PLANE:
        return _OTHER_DATA[data]
    if data in _SMALL and method not in _EVERYWHERE:
        return "few rows"
    return _BY_METHOD.get(method)


def deviations(both):
    """Write the deviations as Markdown: a row for each method, then the reasons.

    Parameters
    ----------
    both : DataFrame
        Accuracies beside the paper's, from `beside_paper`. Sets that are not the paper's are left
        out.
    """
    exact = [name for name, info in REAL_SETS.items() if info.exact]
    known = both[both["data"].isin(exact) & np.isfinite(both["difference"])]
    lines = [
        "| method | sets | mean difference | within 3 points | others, and the reason |",
        "|---" * 5 + "|",
    ]
    used = {}
    for method in dict.fromkeys(known["method"]):
        part = known[known["method"] == method]
        far = part[part["difference"].abs() > POINTS]
        texts = []
        for _, row in far.iterrows():
            name = reason(method, row["data"]) or "unexplained"
            used[name] = None
            texts.append(f"{row['data']} {row['difference']:+.1f} ({name})")
        lines.append(
            f"| {method} | {len(part)} | {part['difference'].mean():+.2f} | "
            f"{len(part) - len(far)} | {', '.join(texts)} |"
        )
    reasons = [
        f"- *{name}*: {REASONS.get(name, 'not known.')}" for name in REASONS | used if name in used
    ]
    return "\n".join([*lines, "", *reasons])
