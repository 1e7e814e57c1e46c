"""
Terms that go together beyond their topics
==========================================

Documents here are the docstrings of scikit-learn's estimators, labeled by module. The components
are topics; the noise network joins terms that come in fixed pairs whatever the topic is.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.discovery import all_estimators

from mnpca import MNPCA
from mnpca.plots import NoiseGraphDisplay, ScoresDisplay

documents, topics, names = [], [], []
for name, estimator in all_estimators():
    documents.append(inspect.getdoc(estimator) or "")
    topics.append(estimator.__module__.split(".")[1])
    names.append(name)
vectorizer = TfidfVectorizer(max_features=150, stop_words="english", token_pattern=r"[a-z]{3,}")
weights = vectorizer.fit_transform(documents).toarray()
X = pd.DataFrame(np.sqrt(weights), index=names, columns=vectorizer.get_feature_names_out())
print(X.shape, "documents x terms")

model = MNPCA(5, noise="graph", random_state=0).fit(X)

# %%
# The largest loadings of each component.
for number, component in enumerate(model.components_, start=1):
    strongest = np.argsort(-np.abs(component))[:8]
    print(f"component {number}:", ", ".join(X.columns[strongest]))

# %%
# The five largest modules on the first two components.
common = pd.Series(topics).value_counts().index[:5]
shown = np.isin(topics, common)
ScoresDisplay(
    model.transform(X)[shown], labels=np.array(topics)[shown], title="documents by module"
).plot()

# %%
# Strongest edges among terms.
figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
NoiseGraphDisplay.from_estimator(model, "columns").plot(ax, max_edges=60, names=True)
