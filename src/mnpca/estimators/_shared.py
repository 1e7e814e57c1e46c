"""Parameters and attributes that several estimators share: what they may be, and what they mean."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

#: What a parameter of this name may be, in scikit-learn's form.
CONSTRAINTS = {
    "center": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "missing": [StrOptions({"em", "error"})],
    "random_state": ["random_state"],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
}
#: Texts of documentation. A class docstring, or a text before, has the name in braces where the
#: text goes.
SHARED_DOCS = {
    "center": """center : bool, default=True
        Whether to subtract the mean of every column. The paper's experiments do not.""",
    "missing": """missing : {"em", "error"}, default="em"
        What NaN in X means: a missing value, replaced in every step of the fit by what the model
        expects of it, with the uncertainty that this leaves; or an error.""",
    "stages": """max_iter : int, default=9
        Most iterations with unequal variances only, before networks.
    tol : float, default=1e-2
        A stage ends when the signal changes by less than this share.""",
    "verbose": """verbose : int, default=0
        Whether to print the objective after every iteration.""",
    "paper": """{components}
    low_rank_ : LowRank
        Scores and loadings of the estimated signal, the mean left out.
    mean_ : ndarray of shape (n_features,)
        Subtracted mean, or zeros.
    {convergence}
    {explained}
    {incomplete}
    {row_distribution}""",
    "components": """components_ : ndarray of shape (n_components, n_features)
        Loadings, orthonormal in the metric ``col_precision_``; the largest absolute loading of
        each is positive.
    singular_values_ : ndarray of shape (n_components,)
        Generalized singular values.""",
    "explained": """n_components_ : int
        Number of components.
    explained_variance_, explained_variance_ratio_ : ndarrays of shape (n_components,)
        Variances of a row's scores, and their shares of the variance of a row in the metric B.""",
    "axes": """shape_ : tuple of int
        Of the training array.
    objective_history_ : ndarray
        What is minimized, after every iteration: the price of the edges less the log-likelihood.
    {convergence}""",
    "convergence": """n_iter_ : int
        Iterations made.
    converged_ : bool
        Whether the fit settled. A ConvergenceWarning says so where it did not.""",
    "incomplete": """missing_, completed_, completed_std_ : ndarrays like X, or None
        Where X had missing values: which, the completed matrix, and its standard errors; see
        `impute`.
    row_coef_ : ndarray of shape (n_row_covariates, n_features) or None
        Effects of the row covariates: `row_covariates_` with `row_covariates_mean_` subtracted.
    col_coef_ : ndarray of shape (n_samples, n_col_covariates) or None
        Effects of the column covariates, which `col_covariates_` keeps.""",
    "row_distribution": """noise_variance_, score_covariance_ : float, ndarray
        The distribution of a row that `score` assumes.""",
    "several": """n_matrices_ : int or None
        Number of matrices, None where `fit` was given one. With several, `denoise` has a first
        axis for them; `low_rank_` has the rows of all, one matrix after the other.""",
    "names": """n_features_in_, feature_names_in_, sample_names_in_
        Size and names of the training data.""",
    "reference": """References
    ----------
    .. [1] C. Zhang, K. Gai and S. Zhang, "Matrix normal PCA for interpretable dimension reduction
       and graphical noise modeling" (2019).""",
}
