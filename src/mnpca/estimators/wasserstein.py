"""MN-PCA by the Wasserstein distance to white noise, as a scikit-learn estimator."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from mnpca.estimators._input import Accepts
from mnpca.estimators._paper import PaperEstimator
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.model.wasserstein import DISCREPANCIES
from mnpca.solvers.missing.refit import Solution, Solve
from mnpca.solvers.progress import Report, State
from mnpca.solvers.wasserstein import Pair, fit_convex, fit_gradient, identify

# Where tol is not given; the two methods measure different changes.
TOLERANCE = {"convex": 1e-5, "gradient": 1e-3}


@dataclass(eq=False, repr=False)
class WassersteinMNPCA(PaperEstimator):
    """PCA with correlated noise, by the Wasserstein distance of whitened noise to white noise.

    Estimates ``Y = X W' + E`` with ``E ~ MN(0, inv A, inv B)``. With A = Q'Q and B = R'R, the
    residual E of the best signal is whitened to Z = Q E R', and::

        relaxed:   |Z|_F^2 / (np)^(1/2) - 2 |Z|_* / (np)^(1/4)
        original:  |Z|_F^4 / (np) - 2 |Z|_*^2 / (np)^(1/2)

    plus ``alpha_row |A|_1 + alpha_col |B|_1`` is minimized [1]_ (``|.|_*`` is the nuclear norm).

    Parameters
    ----------
    n_components : int or "paper", default=2
        Number of components, or the paper's rule for the cumulative share of variance. Components
        that explain X exactly leave no noise: the precisions are then identities.
    alpha_row, alpha_col : float, default=0.05
        Penalties of the two precisions; larger values give fewer edges.
    objective : {"relaxed", "original"}, default="relaxed"
        What is minimized. The original has ``method="gradient"`` only.
    method : {"convex", "gradient"}, default="convex"
        ``convex``: proximal steps on A and B themselves, each of which lowers the objective, from
        the scales of the rows and columns; entries without an edge are exact zeros. The penalties
        apply to rows and columns scaled to mean square one and a residual of mean square one, so
        no units matter. A logarithmic barrier of 3% of the starting penalty keeps both precisions
        positive definite.
        ``gradient``: the paper's algorithm, Adam steps on Q and R from the identity in float32,
        five on each in a round. It works on X as it is, so the noise should have about unit
        variance. It gives no exact zeros, and may stay with the noise that PCA takes for signal.
    {center}
    {missing}
    max_iter : int, default=500
        Largest number of steps of ``convex``; number of rounds of ``gradient``.
    tol : float, default=None
        ``convex`` ends when five steps together lower the objective by at most this share of it
        (default 1e-5). ``gradient`` always makes all its rounds; it counts as converged when the
        mean objectives of the last ten rounds and of the ten before differ by at most this share
        (default 1e-3).
    {verbose}

    Attributes
    ----------
    {paper}
    row_precision_, col_precision_ : csr_array
        A and B, scaled so that ``logdet A = 0`` and the whitened residual has mean square one.
    objective_history_ : ndarray
        Objective at the start and after every iteration, with its penalties (and the barrier of
        ``convex``, whose objective never rises).
    {names}

    {reference}

    Examples
    --------
    >>> from mnpca import WassersteinMNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.metrics import psnr
    >>> data = make_paper_small(c=32, seed=0)
    >>> model = WassersteinMNPCA(2).fit(data.Y)
    >>> psnr(model.denoise(), data.signal) > 15
    True
    >>> model.transform(data.Y[:5]).shape
    (5, 2)
    """

    n_components: int | str = 2
    _: KW_ONLY
    alpha_row: float = 0.05
    alpha_col: float = 0.05
    objective: str = "relaxed"
    method: str = "convex"
    center: bool = True
    missing: str = "em"
    max_iter: int = 500
    tol: float | None = None
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"paper"})],
        "alpha_row": [Interval(Real, 0, None, closed="left")],
        "alpha_col": [Interval(Real, 0, None, closed="left")],
        "objective": [StrOptions(set(DISCREPANCIES))],
        "method": [StrOptions(set(TOLERANCE))],
        "tol": [*CONSTRAINTS["tol"], None],
    }

    @property
    def _accepts(self) -> Accepts:
        return Accepts(foreign=True, missing=self.missing == "em")

    def _solver(self, data: Any, rank: int) -> Solve:
        alpha = Pair(float(self.alpha_row), float(self.alpha_col))
        options: dict[str, Any] = {"max_iter": self.max_iter}
        options["tol"] = TOLERANCE[self.method] if self.tol is None else self.tol
        if self.method == "gradient":
            options["discrepancy"] = DISCREPANCIES[self.objective]
        solver: Any = fit_convex if self.method == "convex" else fit_gradient

        def solve(data: Any, report: Report, resume: State | None) -> Solution:
            fit = solver(data, rank, alpha, report=report, resume=resume, **options)
            signal, precision = identify(data, rank, fit.precision)
            return Solution(*precision, signal, fit.history, fit.converged)

        return solve

    def _prepare(self, X: Any, *covariates: Any) -> Any:
        convex = self.method == "convex"
        if convex and self.objective == "original":
            raise ValueError(
                'objective="original" is not convex in the precisions. Use method="gradient" with '
                'it, or objective="relaxed".'
            )
        for name in ("alpha_row", "alpha_col"):
            if convex and getattr(self, name) == 0:
                raise ValueError(
                    f'{name} must be positive with method="convex": without a penalty the '
                    'precision is not determined. Use a small one, or method="gradient".'
                )
        return super()._prepare(X, *covariates)

    def _unconverged(self) -> str:
        remedy = (
            "Increase max_iter or tol, or the penalties alpha_row and alpha_col."
            if self.method == "convex"
            else 'Increase max_iter, scale X to noise of unit variance, or use method="convex".'
        )
        return f' of method "{self.method}": the objective is still changing. {remedy}'
