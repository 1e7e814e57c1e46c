"""
In a pipeline, with cross-validation
====================================

MN-PCA is a scikit-learn transformer: it is fitted on the training folds alone and projects unseen
rows by generalised least squares, so its scores can feed any classifier.
"""

import pandas as pd
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mnpca import MNPCA

X, y = load_wine(return_X_y=True)

# %%
# Accuracy on held-out folds, PCA and MN-PCA with the same number of components.
accuracy = {}
for name, reducer in {"PCA": PCA(2), "MN-PCA": MNPCA(2, random_state=0)}.items():
    pipeline = make_pipeline(StandardScaler(), reducer, LogisticRegression())
    accuracy[name] = cross_val_score(pipeline, X, y, cv=5)
print(pd.DataFrame(accuracy).describe().loc[["mean", "min", "max"]].round(3))

# %%
# The number of components as a hyper-parameter of the whole pipeline.
pipeline = make_pipeline(StandardScaler(), MNPCA(2, random_state=0), LogisticRegression())
search = GridSearchCV(pipeline, {"mnpca__n_components": [2, 3, 4]}, cv=3).fit(X, y)
print("best:", search.best_params_, f"accuracy {search.best_score_:.3f}")

# %%
# Without labels, ``score`` is the log-likelihood of held-out rows: a criterion of its own.
for k in (2, 3, 4):
    likelihood = cross_val_score(make_pipeline(StandardScaler(), MNPCA(k, random_state=0)), X, cv=3)
    print(f"{k} components: mean held-out log-likelihood {likelihood.mean():.2f} per row")
