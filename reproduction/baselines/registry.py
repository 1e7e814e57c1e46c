"""Every method of dimension reduction that is compared, by the name it has in the tables."""

from sklearn.decomposition import PCA, FastICA, KernelPCA

from mnpca.estimators import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from reproduction.baselines.gplvm import GPLVM
from reproduction.baselines.ppca import PPCA
from reproduction.baselines.predefined import PredefinedGPCA
from reproduction.baselines.program import ProgramMNPCA

_BUILDERS = {
    # The solver that scikit-learn chooses for large matrices is random, and inexact.
    "PCA": lambda k, seed: PCA(k, svd_solver="full"),
    "PPCA": lambda k, seed: PPCA(k),
    "GPLVM": lambda k, seed: GPLVM(k, random_state=seed),
    # Kernels with the parameters that the usual MATLAB toolbox recommends: width 1 for the
    # Gaussian, (x'y + 1)^3 for the polynomial.
    "KPCA-lin": lambda k, seed: KernelPCA(k, kernel="linear", random_state=seed),
    "KPCA-gau": lambda k, seed: KernelPCA(k, kernel="rbf", gamma=0.5, random_state=seed),
    "KPCA-pol": lambda k, seed: KernelPCA(
        k, kernel="poly", degree=3, gamma=1.0, coef0=1.0, random_state=seed
    ),
    "ICA": lambda k, seed: FastICA(k, whiten="unit-variance", max_iter=2000, random_state=seed),
    "GPCA-LL": lambda k, seed: PredefinedGPCA(k, metrics="LL", random_state=seed),
    "GPCA-LS": lambda k, seed: PredefinedGPCA(k, metrics="LS", random_state=seed),
    "GPCA-SL": lambda k, seed: PredefinedGPCA(k, metrics="SL", random_state=seed),
    "GPCA-SS": lambda k, seed: PredefinedGPCA(k, metrics="SS", random_state=seed),
    "MN-PCA-program": lambda k, seed: ProgramMNPCA(k),
    # The paper's start and its program's criterion, and two rounds: the program stops after one
    # to three on most of these sets.
    "LikelihoodMNPCA": lambda k, seed: LikelihoodMNPCA(
        k,
        alpha_row="bic-authors",
        alpha_col="bic-authors",
        scale_free=True,
        start="svd",
        ridge=0.01,
        max_iter=2,
    ),
    "WassersteinMNPCA": lambda k, seed: WassersteinMNPCA(k),
    "MNPCA": lambda k, seed: MNPCA(k, random_state=seed),
}

#: Names of all methods, in the order of the paper's tables.
METHODS = tuple(_BUILDERS)


def make_reducer(name, n_components, *, random_state=0):
    """Return an unfitted scikit-learn transformer.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    n_components : int
        Number of components.
    random_state : int, default=0
        For the methods that are random.

    Examples
    --------
    >>> from reproduction.baselines import make_reducer
    >>> make_reducer("PCA", 3)
    PCA(n_components=3, svd_solver='full')
    """
    if name not in _BUILDERS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}; got {name!r}.")
    return _BUILDERS[name](n_components, random_state)
