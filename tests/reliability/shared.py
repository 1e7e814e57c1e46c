"""Every estimator of the package, with parameters that make it quick on small data."""

import re

import numpy as np
import scipy.sparse as sp

import mnpca
from mnpca.persistence import fingerprint

PARAMS = {
    "GeneralizedPCA": {"n_components": 2},
    "LikelihoodMNPCA": {"n_components": 2},
    "MNPCA": {"n_components": 2, "noise": "graph", "prior": "gaussian"},
    "SparsePrecision": {},
    "WassersteinMNPCA": {"n_components": 2},
}


def make(name, **params):
    """Return an unfitted estimator."""
    return getattr(mnpca, name)(**(PARAMS[name] | params))


def sample(n=24, p=10, seed=1000):
    """A rank-two signal in noise whose scale differs between columns."""
    rng = np.random.default_rng(seed)
    signal = 3 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, p))
    return signal + rng.normal(size=(n, p)) * rng.uniform(0.5, 2, size=p)


def report_of(path):
    """The bytes of a report without the minute it was made in."""
    return re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"", path.read_bytes())


def fitted(model):
    """The fitted attributes by name."""
    params = model.get_params(deep=False)
    return {key: value for key, value in vars(model).items() if key not in params}


def digest(model):
    """The fitted attributes as fingerprints, equal where they agree to the bit."""
    return {key: fingerprint(value) for key, value in fitted(model).items()}


def assert_same_model(one, other):
    """Parameters and fitted attributes agree to the bit, types included."""
    assert type(one) is type(other)
    assert fingerprint(one.get_params(deep=False)) == fingerprint(other.get_params(deep=False))
    a, b = fitted(one), fitted(other)
    assert {key: type(value) for key, value in a.items()} == {k: type(v) for k, v in b.items()}
    assert digest(one) == digest(other)


def are_finite(model):
    """Whether all fitted numbers are; normal rows have infinite degrees of freedom."""
    attributes = fitted(model)
    attributes.pop("degrees_of_freedom_", None)
    return all(np.isfinite(numbers(value)).all() for value in attributes.values())


def numbers(value):
    """All floating point numbers inside a fitted attribute."""
    if sp.issparse(value):
        value = value.data
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers(item)]
    value = np.asarray(value)
    return value.ravel().tolist() if value.dtype.kind == "f" else []
