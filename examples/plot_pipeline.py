"""
In a pipeline, with cross-validation
====================================

MN-PCA is a scikit-learn transformer: it is fitted on the training folds alone and projects unseen
rows by generalized least squares, so its scores can feed any classifier.
"""

import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mnpca import MNPCA
from mnpca.datasets import make_paper_small

data = make_paper_small(c=96, seed=1000, n_samples=150, n_features=100)
X, y = data.Y, data.labels

# %%
# Accuracy on held-out folds, PCA and MN-PCA with the same number of components.
accuracy = {}
for name, reducer in {"PCA": PCA(2), "MN-PCA": MNPCA(2, random_state=0)}.items():
    pipeline = make_pipeline(StandardScaler(), reducer, LogisticRegression())
    accuracy[name] = cross_val_score(pipeline, X, y, cv=3)
accuracy = pd.DataFrame(accuracy)
print(accuracy.describe().loc[["mean", "min", "max"]].round(3))
accuracy.plot.box(ylabel="accuracy on held-out folds", ylim=(0.5, 1.01))

# %%
# The structure of the noise as a hyper-parameter of the whole pipeline.
pipeline = make_pipeline(StandardScaler(), MNPCA(2, random_state=0), LogisticRegression())
search = GridSearchCV(pipeline, {"mnpca__noise": ["diagonal", "graph"]}, cv=2).fit(X, y)
print(pd.DataFrame(search.cv_results_)[["param_mnpca__noise", "mean_test_score"]].round(3))

# %%
# Without labels, ``score`` is the log-likelihood of held-out rows, as PCA's is. Here the two are
# nearly equal: with so few rows hardly an edge among columns can be seen, and the network among
# rows is of no use for new ones.
for name, model in {"PCA": PCA(2), "MN-PCA": MNPCA(2, random_state=0)}.items():
    likelihood = cross_val_score(model, X, cv=3)
    print(f"{name:6} mean held-out log-likelihood {likelihood.mean():.1f} per row")
