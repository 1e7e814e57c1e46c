"""Fitted models to files and back."""

import inspect
import os

from sklearn.utils.validation import check_is_fitted

from mnpca.estimators._array_api import on_host
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


class SaveMixin:
    """Adds `save` to an estimator whose class is listed in `MODELS`."""

    def save(self, path):
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
        from mnpca import __version__

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


def load(path):
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
    import mnpca.estimators

    content = read_document(path, "model")
    name = os.fspath(path)
    try:
        kind, params, attributes = content["class"], content["params"], content["attributes"]
        if kind not in MODELS:
            raise ModelFileError(f"{kind!r} is not a model of this version")
        model_class = getattr(mnpca.estimators, kind)
        _check_names(model_class, params, attributes)
        model = model_class(**params)
        vars(model).update(attributes)
        check_is_fitted(model)
        check_meaning(model)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{name!r} cannot be read: it does not describe a fitted model ({error})."
        ) from error
    return model


def _check_names(model_class, params, attributes):
    """Refuse names that would replace a method or that the constructor does not know."""
    known = set(inspect.signature(model_class).parameters)
    if unknown := set(params) - known:
        raise ModelFileError(f"unknown parameters {sorted(map(str, unknown))}")
    for name in attributes:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ModelFileError(f"{name!r} is no attribute name")
        if name.startswith("__") or hasattr(model_class, name) or name in known:
            raise ModelFileError(f"attribute {name!r} would replace a part of the class")
