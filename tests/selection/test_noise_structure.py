import warnings

import pytest

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_paper_small
from mnpca.model.whiteness import Whiteness
from mnpca.selection.noise_structure import (
    NoiseTrial,
    advice,
    graph_is_right,
    variances_are_noise,
)


def residual(correlation=0.0, largest=1.0, linked=0.0):
    return Whiteness(correlation, correlation, linked, linked, 0.02, largest, 300, 200)


def trial(structure, *, edges=0, live=2, strength=1.0, **kwargs):
    return NoiseTrial(structure, edges, 0, 0.0, live, strength, 0.0, residual(**kwargs))


def test_networks_are_kept_where_they_whiten_and_help():
    diagonal = trial("diagonal", strength=1.0)
    assert graph_is_right(trial("graph", edges=9, strength=1.1), diagonal)
    assert not graph_is_right(trial("graph", edges=9, strength=0.9), diagonal)
    assert not graph_is_right(trial("graph", edges=0, strength=1.1), diagonal)
    assert not graph_is_right(trial("graph", edges=9, strength=1.1, correlation=0.1), diagonal)
    correlated = trial("diagonal", strength=1.0, correlation=0.1)
    assert graph_is_right(trial("graph", edges=9, strength=0.9), correlated)


def test_variances_of_signal_are_not_those_of_noise():
    assert variances_are_noise(trial("diagonal"))
    assert not variances_are_noise(trial("diagonal", live=0))
    assert not variances_are_noise(trial("diagonal", largest=3.0))


def test_advice_names_what_was_found_and_what_was_not_tried():
    bad = trial("diagonal", correlation=0.2, largest=1.5)
    text = advice(bad, ["diagonal"])
    assert "correlations" in text
    assert 'noise="graph"' in text
    assert "larger n_components" in text
    assert 'noise="graph"' not in advice(bad, ["graph", "diagonal"])
    assert "fits" in advice(trial("diagonal"), ["diagonal"])


@pytest.mark.parametrize("seed", [1000, 1001])
def test_correlated_noise_gets_networks(seed):
    rows, cols = chain_precision(300, 0.6), chain_precision(200, 0.6)
    chains = make_paper_small(seed=seed, row_precision=rows, col_precision=cols)
    for Y in (chains.Y, make_paper_small(c=224, seed=seed).Y):
        assert MNPCA(2).fit(Y).noise_["structure"] == "graph"


def test_white_noise_gets_none():
    model = MNPCA(2).fit(make_paper_small(c=1, seed=1000).Y)
    assert model.noise_["structure"] == "diagonal"


def test_a_dense_residual_is_not_tried_as_a_network():
    # Ten strong components, one of them fitted: the rest is no sparse network.
    from mnpca.datasets import make_low_rank_matrix_normal

    data = make_low_rank_matrix_normal(200, 80, 10, condition=1, signal_scale=3, random_state=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MNPCA(1).fit(data.Y)
    assert [t["structure"] for t in model.noise_["candidates"]] == ["diagonal", "identity"]
