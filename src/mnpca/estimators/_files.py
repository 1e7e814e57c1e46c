"""Fits that report and can be resumed, and the files of fits: checkpoints and models."""

import contextlib
import inspect
import os
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from mnpca import __version__
from mnpca._typing import PathLike
from mnpca.engines import reads_in_blocks
from mnpca.engines.arrays import is_foreign_array, on_host
from mnpca.estimators._array_api import fingerprint_rows
from mnpca.estimators._docs import SHARED_DOCS
from mnpca.estimators._meaning import check_meaning
from mnpca.persistence import (
    ModelFileError,
    fingerprint,
    looks_like,
    read_document,
    remove_leftovers,
    write_document,
)
from mnpca.solvers.progress import Progress, Report, State

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
# A checkpoint is written when the fit has run 20 times as long as the last one took to write
# since then, so checkpoints cost at most 5% of the time, and when 5% of the fit's time so far
# (at most a minute) would be lost.
WRITE_SHARE = 20.0
LOSS_SHARE = 0.05
LONGEST_WAIT = 60.0

# Parameters that change how a fit is run and not its result.
FREE_PARAMS = ("n_jobs", "verbose")

# Not the fault of a checkpoint: memory (RuntimeError on devices), files, warnings made errors.
NOT_ITS_FAULT = (MemoryError, OSError, RuntimeError, Warning)


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


class CheckpointError(ValueError):
    """A checkpoint that belongs to another fit: other data, class or parameters.

    Examples
    --------
    >>> import os, tempfile
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> model = mnpca.LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "checkpoint.mnpca")
    ...     _ = model.fit(data.Y, checkpoint=path)
    ...     try:
    ...         _ = model.fit(2 * data.Y, resume_from=path)
    ...     except mnpca.CheckpointError:
    ...         print("other data")
    other data
    """


@contextlib.contextmanager
def reported(
    estimator: Any,
    X: Any,
    callback: Report | None = None,
    checkpoint: PathLike | None = None,
    resume_from: PathLike | None = None,
) -> Iterator[tuple[Report, State | None]]:
    """Turn the arguments of ``fit(X, callback=, checkpoint=, resume_from=)`` into a report.

    An estimator's fit wraps its solver::

        with reported(self, X, callback, checkpoint, resume_from) as (report, resume):
            result = solver(X, ..., report=report, resume=resume)

    where X is the validated data, `report` a `mnpca.solvers.progress.Report` and `resume` the
    state to resume from, or None.
    """
    resume = writer = None
    if checkpoint is not None or resume_from is not None:
        identity = _fit_identity(estimator, X)
        resume = None if resume_from is None else _read_checkpoint(resume_from, identity)
        writer = None if checkpoint is None else CheckpointWriter(checkpoint, identity)
    raised_here = []

    def report(progress: Progress) -> None:
        if estimator.verbose:
            print(
                f"[{type(estimator).__name__}] {progress.stage}, iteration {progress.iteration}: "
                f"objective {progress.objective:.6f}"
            )
        try:
            for listener in (writer, callback):
                if listener is not None:
                    listener(progress)
        except Exception as error:
            raised_here.append(error)
            raise

    try:
        yield report, resume
    except KeyboardInterrupt as interrupt:
        if writer is not None:
            _explain(interrupt, writer)
        raise
    except Exception as error:
        # A solver trusts its state; with a senseless one NumPy and LAPACK raise anything.
        if resume is None or isinstance(error, NOT_ITS_FAULT) or error in raised_here:
            raise
        raise ModelFileError(
            f"The fit resumed from the checkpoint {os.fspath(resume_from or '')!r} failed "
            f"({type(error).__name__}: {error}). If it succeeds without resume_from, the "
            "checkpoint is altered or of another version of mnpca."
        ) from error


def _fit_identity(estimator: Any, X: Any) -> dict[str, Any]:
    """Return what must agree between a checkpoint and the fit that is resumed from it."""
    params = estimator.get_params(deep=False)
    outside = is_foreign_array(X) or reads_in_blocks(X)
    return {
        "class": type(estimator).__name__,
        "params": {n: fingerprint(v) for n, v in params.items() if n not in FREE_PARAMS},
        "data": fingerprint_rows(X) if outside else fingerprint(X),
    }


class ReportingEstimator(SaveMixin):
    """An estimator whose fit reports its progress and can be interrupted and resumed.

    A subclass has ``_prepare(X, row_covariates, col_covariates)``, which checks them and returns
    what is fitted and the data that identify a checkpoint, and ``_fit(training, report, resume)``.
    """

    _prepare: Callable[..., tuple[Any, Any]]
    _fit: Callable[..., None]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        row_covariates: Any = None,
        col_covariates: Any = None,
        callback: Report | None = None,
        checkpoint: PathLike | None = None,
        resume_from: PathLike | None = None,
    ) -> Self:
        """Estimate the signal and the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; with more axes for `TensorMNPCA`, several matrices for `DimensionFoldingPCA`. An
            array of torch, CuPy or another library of the array API standard is fitted
            where it lives; fitted arrays and what `transform`, `inverse_transform` and `denoise`
            return then belong to its library and device. `MNPCA` and `LikelihoodMNPCA` also take
            several matrices, as an array with three axes or as a list. `MNPCA` reads a dask array,
            and a memory-mapped one with at least as many rows as columns, in blocks of rows: they
            need not fit into memory. A sparse matrix stays sparse in `MNPCA` and
            `LikelihoodMNPCA`; its zeros are observations.
        y : None
            Ignored.
        row_covariates : array-like of shape (n_samples, n_row_covariates), default=None
            Known covariates of the rows. Their effects are estimated by generalized least squares
            under the noise, together with the rest of the model.
        col_covariates : array-like of shape (n_features, n_col_covariates), default=None
            Known covariates of the columns.
        callback : callable, default=None
            Called with a `mnpca.Progress` after every iteration.
        checkpoint : path-like, default=None
            File in which the state of the fit is kept.
        resume_from : path-like, default=None
            Checkpoint of the same fit to resume from.

        Returns
        -------
        self
        """
        training, data = self._prepare(X, row_covariates, col_covariates)
        with reported(self, data, callback, checkpoint, resume_from) as (report, resume):
            self._fit(training, report, resume)
        return self


class CheckpointWriter:
    """A report that stores the solver's state in a file, seldom enough to cost little.

    `last` is the progress that the file holds. The file belongs to one fit at a time.
    """

    def __init__(self, path: PathLike, identity: dict[str, Any]) -> None:
        self.path = os.fspath(path)
        self.last: Progress | None = None
        self._identity = identity
        self._start = time.monotonic()
        self._written = -float("inf")
        self._cost = 0.0
        _check_replaceable(self.path)
        remove_leftovers(path)

    def __call__(self, progress: Progress) -> None:
        """Write a checkpoint if it is time for one."""
        now = time.monotonic()
        wait = max(WRITE_SHARE * self._cost, min(LOSS_SHARE * (now - self._start), LONGEST_WAIT))
        if now - self._written >= wait:
            self._write(progress)
            self._written = time.monotonic()
            self._cost = self._written - now

    def _write(self, progress: Progress) -> None:
        content = {
            "identity": self._identity,
            "stage": progress.stage,
            "iteration": progress.iteration,
            "state": dict(progress.state()),
        }
        write_document(self.path, "checkpoint", __version__, content)
        self.last = progress


def _check_replaceable(path: str) -> None:
    """Refuse to write a checkpoint over anything else, such as the data."""
    if not os.path.isfile(path) or os.path.getsize(path) == 0 or looks_like(path, "checkpoint"):
        return  # what is no file is refused when it is written
    raise CheckpointError(
        f"checkpoint={path!r} exists and is no checkpoint, so it is not written over. Name another "
        "file, or remove that one."
    )


def _read_checkpoint(path: PathLike, identity: dict[str, Any]) -> State:
    """Return the stored state after checking that it belongs to this very fit."""
    content = read_document(path, "checkpoint")
    name = os.fspath(path)
    stored: Any = content.get("identity")
    state = content.get("state")
    if not (_is_identity(stored) and isinstance(state, dict)):
        raise ModelFileError(f"{name!r} cannot be read: it does not hold the state of a fit.")
    if stored["class"] != identity["class"]:
        raise CheckpointError(
            f"The checkpoint {name!r} is of a {stored['class']}, this is a {identity['class']}. "
            "Resume with the same estimator, or fit without resume_from."
        )
    theirs, ours = stored["params"], identity["params"]
    different = sorted(key for key in theirs | ours if theirs.get(key) != ours.get(key))
    if different:
        raise CheckpointError(
            f"The checkpoint {name!r} was made with other parameters: {', '.join(different)}. "
            "Resume with the same parameters, or fit without resume_from."
        )
    if stored["data"] != identity["data"]:
        raise CheckpointError(
            f"The checkpoint {name!r} was made on other data (X differs). "
            "Resume with the same X, or fit without resume_from."
        )
    return state


def _is_identity(stored: Any) -> bool:
    """Whether a value from a file has the form of `_fit_identity`."""
    if not (isinstance(stored, dict) and stored.keys() == {"class", "params", "data"}):
        return False
    params = stored["params"]
    if not isinstance(params, dict):
        return False
    texts = (stored["class"], stored["data"], *params, *params.values())
    return all(isinstance(text, str) for text in texts)


def _explain(interrupt: KeyboardInterrupt, writer: "CheckpointWriter") -> None:
    """Add to the interrupt what was kept and how to resume."""
    if writer.last is None:
        interrupt.add_note("The fit was interrupted before its first checkpoint.")
        return
    interrupt.add_note(
        f"The fit was interrupted; its state at {writer.last.stage!r}, iteration "
        f"{writer.last.iteration}, is kept. Resume with "
        f"fit(X, checkpoint={writer.path!r}, resume_from={writer.path!r})."
    )
