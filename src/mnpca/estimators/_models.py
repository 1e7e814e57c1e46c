"""Model files: how a fitted estimator is saved and read back, without pickle."""

import inspect
import os
import textwrap
from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from mnpca import __version__
from mnpca._typing import PathLike
from mnpca.engines.arrays import on_host
from mnpca.estimators._docs import SHARED_DOCS
from mnpca.estimators._meaning import check_meaning
from mnpca.persistence import ModelFileError, read_document, write_document

MATRIX_MODELS = (
    "GeneralizedPCA",
    "LikelihoodMNPCA",
    "MNPCA",
    "SparsePrecision",
    "WassersteinMNPCA",
)
ARRAY_MODELS = ("DimensionFoldingPCA", "TensorMNPCA")
MODELS = MATRIX_MODELS + ARRAY_MODELS
"""The classes a model file may name; nothing else is ever looked up."""
_CLASSES: dict[str, type[Any]] = {}
#: Names in files of version 0.1.0 as written before its release, and what they are called now.
RENAMED = {"TensorMNPCA": {"rank": "n_components", "rank_": "n_components_"}}
#: Attributes of models with a parameter ``missing`` that such files may lack.
ADDED = (
    "missing_",
    "completed_",
    "completed_std_",
    "row_coef_",
    "col_coef_",
    "row_covariates_",
    "row_covariates_mean_",
    "col_covariates_",
)
#: Parameters of such files that never had an effect.
DROPPED = dict.fromkeys(
    ("DimensionFoldingPCA", "LikelihoodMNPCA", "SparsePrecision", "WassersteinMNPCA"),
    ("random_state",),
)


class SaveMixin:
    """Adds `save` to an estimator in `MODELS`, and `SHARED_DOCS` to its documentation."""

    get_params: Callable[..., dict[str, Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__name__ in MODELS:
            _CLASSES.setdefault(cls.__name__, cls)
            cls.__doc__ = inspect.cleandoc(cls.__doc__ or "")
            for name, text in SHARED_DOCS.items():
                cls.__doc__ = cls.__doc__.replace(f"{{{name}}}", textwrap.dedent(f"    {text}"))

    def save(self, path: PathLike) -> Self:
        """Write the fitted model to one file, without pickle; read it with `mnpca.load`.

        The file takes its name only once it is complete, so an older one is never lost.

        Parameters
        ----------
        path : path-like
            Where to write.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        name = type(self).__name__
        if name not in MODELS:
            raise TypeError(f"{name} has no model file; save one of {', '.join(MODELS)}.")
        params = self.get_params(deep=False)
        attributes = {
            name: on_host(value) for name, value in vars(self).items() if name not in params
        }
        content = {"class": name, "params": params, "attributes": attributes}
        write_document(path, "model", __version__, content)
        return self


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
        not fit each other, are not finite, or are no precisions where they should be.

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
    name = os.fspath(path)
    try:
        kind, params, attributes = content["class"], content["params"], content["attributes"]
        if kind not in MODELS:
            raise ModelFileError(f"{kind!r} is not a model of this version")
        model_class = _CLASSES[kind]
        renamed, dropped = RENAMED.get(kind, {}), DROPPED.get(kind, ())
        params, attributes = (
            {renamed.get(name, name): value for name, value in each.items() if name not in dropped}
            for each in (params, attributes)
        )
        _check_names(model_class, params, attributes)
        model = model_class(**params)
        if "missing" in inspect.signature(model_class).parameters:
            attributes |= {name: None for name in ADDED if name not in attributes}
        vars(model).update(attributes)
        check_is_fitted(model)
        check_meaning(model)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{name!r} cannot be read: it does not describe a fitted model ({error})."
        ) from error
    return model


def _check_names(model_class: type, params: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Refuse names that would replace a method or that the constructor does not know."""
    known = set(inspect.signature(model_class).parameters)
    if unknown := set(params) - known:
        raise ModelFileError(f"unknown parameters {sorted(map(str, unknown))}")
    for name in attributes:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ModelFileError(f"{name!r} is no attribute name")
        if name.startswith("__") or hasattr(model_class, name) or name in known:
            raise ModelFileError(f"attribute {name!r} would replace a part of the class")
