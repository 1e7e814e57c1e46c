"""What estimators share that find two metrics and then take components of generalized PCA."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class ComponentsInMetrics(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Scores of a fit that ends with ``gpca_``, a fitted GeneralizedPCA."""

    @property
    def _n_features_out(self):
        return self.n_components

    def transform(self, X):
        """Return the scores of rows in the fitted metrics."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.gpca_.transform(X)
