"""From a matrix to a fitted model: outliers, rank and noise, each given or chosen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mnpca._typing import BoolArray
from mnpca.engines import engine_for
from mnpca.noise.estimate import Structure, structure_of
from mnpca.solvers.mnpca.fit import MNPCAFit, fit_with
from mnpca.solvers.mnpca.robust import clean_cells, conditional_outliers
from mnpca.solvers.mnpca.settings import Settings
from mnpca.solvers.progress import Progress, Report, State, silent

T = TypeVar("T")


@dataclass(frozen=True)
class ChosenModel:
    """The fit and what it was made of.

    Attributes
    ----------
    fit : MNPCAFit
        The model, with all components of its signal.
    shown : MNPCAFit
        The same with the leading components that were asked for.
    data : array or Engine of shape (n, p)
        What was fitted: the observations, outliers replaced by the signal.
    outliers : boolean array of shape (n, p) or None
        None where no outliers were looked for.
    """

    fit: MNPCAFit
    shown: MNPCAFit
    data: Any
    outliers: BoolArray | None = None

    @property
    def structures(self) -> tuple[Structure, Structure]:
        """Return the noise structures of rows and columns."""
        return structure_of(self.fit.row_noise), structure_of(self.fit.col_noise)


def choose_model(
    Y: Any,
    n_components: float | None,
    settings: Settings,
    *,
    robust: bool,
    report: Report,
    resume: State | None = None,
) -> ChosenModel:
    """Fit the model with the rank that the evidence prefers; show the components asked for.

    The noise does not depend on how many components are asked for: the model is fitted with all
    components that it needs, and the leading ones are shown. Only where more are asked for than
    the evidence finds is it fitted again, with that many.

    Parameters
    ----------
    Y : array or Engine of shape (n, p)
        Data; finding outliers needs a NumPy array.
    n_components : int, float or None
        How many components to show, or the share of the signal that they have; None shows all.
    settings : Settings
        Of the fits, with the rank left to the evidence.
    robust : bool
        Whether to find and replace gross outliers first.
    report, resume
        As in `fit_mnpca`. Fits that were complete are repeated on resuming.
    """
    steps = _Steps(report, resume)
    if not robust:
        return _fit(Y, n_components, settings, steps, "")
    if not isinstance(Y, np.ndarray):
        raise TypeError(
            f"robust=True needs the data as a NumPy array, not as a {type(Y).__name__}. "
            "Convert X first, or use robust=False."
        )
    Y = Y.astype(np.float64, copy=False)

    def rank_of(data: Any) -> int:
        if isinstance(n_components, int):
            return n_components
        chosen = _fit(data, None, settings, steps, "rank for outliers, ")
        return len(chosen.fit.singular_values)

    cleaned, outliers = clean_cells(Y, rank_of, seed=settings.seed)
    first = _fit(cleaned, n_components, settings, steps, "outliers, ")
    # Detection knew variances only; under the networks of a full model more entries stand out.
    signal = first.fit.denoised()
    precisions = first.fit.row_noise.precision, first.fit.col_noise.precision
    residual = np.where(outliers, 0.0, Y - signal)
    more = conditional_outliers(residual, *precisions)
    filled = np.where(more, signal, cleaned)
    outliers = outliers | more
    second = _fit(filled, n_components, settings, steps, "refit, ")
    return replace(second, outliers=outliers)


def _fit(
    Y: Any, n_components: float | None, settings: Settings, steps: "_Steps", label: str
) -> ChosenModel:
    engine = engine_for(Y)
    fit, shown = steps.run(
        label,
        lambda report, resume: fit_with(engine, settings, report, resume, shown=n_components),
    )
    if isinstance(n_components, int) and n_components > len(fit.singular_values):
        more = replace(settings, rank=n_components)
        fit, shown = steps.run(
            f"{label}{n_components} components, ",
            lambda report, resume: fit_with(engine, more, report, resume),
        )
    return ChosenModel(fit, shown, Y)


class _Steps:
    """Runs labeled fits; the one that was interrupted continues where it was."""

    def __init__(self, report: Report, resume: State | None) -> None:
        self.report = report
        self.resume = resume

    def run(self, label: str, fit: Callable[[Report, State | None], T]) -> T:
        """Run a fit under its label."""
        if self.resume is not None and self.resume["step"] != label:
            # A repeated fit must not take the place of a later one in the checkpoint.
            return fit(silent, None)
        state, self.resume = self.resume, None

        def report(progress: Progress) -> None:
            self.report(
                replace(
                    progress,
                    stage=f"{label}{progress.stage}",
                    state=lambda: {**progress.state(), "step": label},
                )
            )

        return fit(report, state)
