"""What a fit leaves on disk: the model, and checkpoints from which it can be resumed."""

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
from mnpca.estimators._shared import SHARED_DOCS
from mnpca.persistence import (
    ModelFileError,
    fingerprint,
    looks_like,
    read_document,
    remove_leftovers,
    write_document,
)
from mnpca.solvers.progress import Progress, Report, State

#: The classes that a model file may name; nothing else is ever looked up.
MODELS = (
    "DimensionFoldingPCA",
    "GeneralizedPCA",
    "LikelihoodMNPCA",
    "MNPCA",
    "SparsePrecision",
    "TensorMNPCA",
    "WassersteinMNPCA",
)
#: A checkpoint is written once the fit has run, since the last one, 20 times as long as writing
#: that took, so that checkpoints cost at most 5% of the time ...
WRITE_SHARE = 20.0
#: ... and once 5% of the time so far, or a minute, would be lost.
LOSS_SHARE, LONGEST_WAIT = 0.05, 60.0
#: Parameters that change how a fit is run and not its result.
FREE_PARAMS = ("n_jobs", "verbose")
#: What a false checkpoint does not cause: lack of memory (RuntimeError on devices), errors of
#: files, warnings made errors.
UNRELATED = (MemoryError, OSError, RuntimeError, Warning)


class SaveMixin:
    """Adds `save` to an estimator in `MODELS`, and `SHARED_DOCS` to its documentation."""

    get_params: Callable[..., dict[str, Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
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
        attributes = {key: on_host(each) for key, each in vars(self).items() if key not in params}
        content = {"class": name, "params": params, "attributes": attributes}
        write_document(path, "model", __version__, content)
        return self


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
            on its device; fitted arrays and what `transform`, `inverse_transform` and `denoise`
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


@contextlib.contextmanager
def reported(
    estimator: Any,
    X: Any,
    callback: Report | None = None,
    checkpoint: PathLike | None = None,
    resume_from: PathLike | None = None,
) -> Iterator[tuple[Report, State | None]]:
    """Yield a report and a state to resume from, for the arguments of `ReportingEstimator.fit`.

    X is the validated data. The report prints, writes checkpoints and calls the callback.
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
            interrupt.add_note(writer.how_to_resume())
        raise
    except Exception as error:
        # Solvers do not check the state; with a false one NumPy and LAPACK raise anything.
        if resume is None or isinstance(error, UNRELATED) or error in raised_here:
            raise
        raise ModelFileError(
            f"The fit resumed from the checkpoint {os.fspath(resume_from or '')!r} failed "
            f"({type(error).__name__}: {error}). If it succeeds without resume_from, the "
            "checkpoint is altered or of another version of mnpca."
        ) from error


class CheckpointWriter:
    """A report that stores the solver's state in a file, seldom enough to cost little."""

    def __init__(self, path: PathLike, identity: dict[str, str]) -> None:
        self.path = os.fspath(path)
        self._identity = identity
        self._last: Progress | None = None  # what the file holds
        self._start = time.monotonic()
        self._written = -float("inf")
        self._cost = 0.0
        # A path that is not a regular file is refused when it is written.
        replaceable = not os.path.isfile(path) or os.path.getsize(path) == 0
        if not (replaceable or looks_like(path, "checkpoint")):
            raise CheckpointError(
                f"checkpoint={self.path!r} exists and is no checkpoint, so it is not written over. "
                "Name another file, or remove that one."
            )
        remove_leftovers(path)

    def __call__(self, progress: Progress) -> None:
        """Write a checkpoint if it is time for one."""
        now = time.monotonic()
        wait = max(WRITE_SHARE * self._cost, min(LOSS_SHARE * (now - self._start), LONGEST_WAIT))
        if now - self._written < wait:
            return
        content = {
            "identity": self._identity,
            "stage": progress.stage,
            "iteration": progress.iteration,
            "state": dict(progress.state()),
        }
        write_document(self.path, "checkpoint", __version__, content)
        self._last = progress
        self._written = time.monotonic()
        self._cost = self._written - now

    def how_to_resume(self) -> str:
        """Say what an interrupted fit has kept."""
        if self._last is None:
            return "The fit was interrupted before its first checkpoint."
        return (
            f"The fit was interrupted; its state at {self._last.stage!r}, iteration "
            f"{self._last.iteration}, is kept. Resume with "
            f"fit(X, checkpoint={self.path!r}, resume_from={self.path!r})."
        )


def _fit_identity(estimator: Any, X: Any) -> dict[str, str]:
    """Return what must agree between a checkpoint and the fit that is resumed from it."""
    params = estimator.get_params(deep=False)
    outside = is_foreign_array(X) or reads_in_blocks(X)
    return {
        "class": type(estimator).__name__,
        "data": fingerprint_rows(X) if outside else fingerprint(X),
        **{f"parameter {n}": fingerprint(v) for n, v in params.items() if n not in FREE_PARAMS},
    }


def _read_checkpoint(path: PathLike, identity: dict[str, str]) -> State:
    """Return the stored state after checking that it belongs to this very fit."""
    content = read_document(path, "checkpoint")
    name, state = os.fspath(path), content.get("state")
    stored: Any = content.get("identity")
    texts = [*stored, *stored.values()] if isinstance(stored, dict) else [None]
    if not (isinstance(state, dict) and all(isinstance(text, str) for text in texts)):
        raise ModelFileError(f"{name!r} cannot be read: it does not hold the state of a fit.")
    different = sorted(key for key in stored | identity if stored.get(key) != identity.get(key))
    if not different:
        return state
    if "class" in different:
        what, same = f"is of a {stored.get('class')}, this is a {identity['class']}", "estimator"
    elif different != ["data"]:
        names = ", ".join(key.removeprefix("parameter ") for key in different if key != "data")
        what, same = f"was made with other parameters: {names}", "parameters"
    else:
        what, same = "was made on other data (X differs)", "X"
    raise CheckpointError(
        f"The checkpoint {name!r} {what}. Resume with the same {same}, or fit without resume_from."
    )
