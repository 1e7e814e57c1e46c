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

# %%
# The table counts words and does not know their order. The texts do: in a fixed phrase two terms
# stand side by side. How often does the rarer term of a pair stand next to the other?
vocabulary = vectorizer.vocabulary_
beside, count = np.zeros((len(vocabulary), len(vocabulary))), np.zeros(len(vocabulary))
for document in documents:
    places = [vocabulary.get(word, -1) for word in vectorizer.build_analyzer()(document)]
    for place, following in zip(places, [*places[1:], -1], strict=True):
        if place >= 0:
            count[place] += 1
            if following >= 0:
                beside[[place, following], [following, place]] += 1
phrase = beside / np.minimum.outer(count, count) > 0.1

table = model.edges("columns", fdr=0.05)
strongest = np.argsort(-np.abs(np.asarray(table["partial_correlation"])))[:30]
edges = tuple(np.asarray(table[name])[strongest] for name in ("node_1", "node_2"))
pairs = np.triu_indices(len(vocabulary), 1)
correlated = np.argsort(-np.abs(np.corrcoef(X.T)[pairs]))[:30]
print(
    f"30 strongest edges: {phrase[edges].mean():.0%} side by side in a tenth of the cases or more"
)
print(f"30 strongest correlations: {phrase[pairs][correlated].mean():.0%}")
print(f"all pairs: {phrase[pairs].mean():.0%}")
