"""Reading a model file: its class, its names, and whether its values can be those of a fit."""

import inspect
import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from mnpca import estimators
from mnpca._typing import PathLike
from mnpca.estimators._files import MODELS
from mnpca.estimators._meaning import check_meaning
from mnpca.persistence import ModelFileError, read_document

#: None where a model with the parameter ``missing`` was fitted to a complete matrix. Files that
#: were written before the release of 0.1.0 may lack them.
INCOMPLETE = {
    "missing_": "np",
    "completed_": "np",
    "completed_std_": "np",
    "row_coef_": "qp",
    "row_covariates_": "nq",
    "row_covariates_mean_": "q",
    "col_coef_": "nc",
    "col_covariates_": "pc",
}
#: Other names and former parameters in files from before the release of 0.1.0.
RENAMED = {"TensorMNPCA": {"rank": "n_components", "rank_": "n_components_"}}
DROPPED = dict.fromkeys(
    ("DimensionFoldingPCA", "LikelihoodMNPCA", "SparsePrecision", "WassersteinMNPCA"),
    ("random_state",),
)


def load(path: PathLike) -> Any:
    """Read a fitted model that `save` wrote.

    Nothing in the file is executed: it holds numbers, strings and arrays, and the class is one of
    mnpca's estimators.

    Parameters
    ----------
    path : path-like
        A model file, of this version or an earlier one.

    Returns
    -------
    estimator
        With the parameters and fitted attributes it had.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, foreign, or from a later version, or if its arrays do
        not fit each other, are not finite, or are not precisions where they should be.

    Examples
    --------
    >>> import os, tempfile
    >>> import mnpca
    >>> from mnpca.datasets import make_paper_small
    >>> model = mnpca.GeneralizedPCA(n_components=2).fit(make_paper_small(seed=0).Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.mnpca")
    ...     _ = model.save(path)
    ...     again = mnpca.load(path)
    >>> bool((again.components_ == model.components_).all())
    True
    """
    content = read_document(path, "model")
    try:
        return _rebuild(content["class"], content["params"], content["attributes"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be read: it does not describe a fitted model ({error})."
        ) from error


def _rebuild(kind: str, params: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """Return the model with the given class name, parameters and attributes."""
    if kind not in MODELS:
        raise ValueError(f"{kind!r} is not a model of this version")
    model_class = getattr(estimators, kind)
    renamed, dropped = RENAMED.get(kind, {}), DROPPED.get(kind, ())
    params, attributes = (
        {renamed.get(name, name): value for name, value in each.items() if name not in dropped}
        for each in (params, attributes)
    )
    known = inspect.signature(model_class).parameters
    if unknown := params.keys() - known.keys():
        raise ValueError(f"unknown parameters {sorted(map(str, unknown))}")
    for name in attributes:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"{name!r} is no attribute name")
        if name.startswith("__") or hasattr(model_class, name) or name in known:
            raise ValueError(f"attribute {name!r} would replace a part of the class")
    if "missing" in known:
        attributes |= {name: None for name in INCOMPLETE if name not in attributes}
    model = model_class(**params)
    vars(model).update(attributes)
    check_is_fitted(model)
    check_meaning(model)
    return model
