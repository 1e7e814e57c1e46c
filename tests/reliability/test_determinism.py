"""The same seed gives the same result: again, in another process, with other numbers of threads."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reliability.shared import digest, fitted, make, numbers
from threadpoolctl import threadpool_limits

from mnpca.datasets import make_paper_small

# Large enough that BLAS uses its threads.
Y = make_paper_small(c=32, seed=1000, n_samples=120, n_features=90).Y


def quick(name):
    """A part of the data for the slower estimators."""
    shape = {"LikelihoodMNPCA": (100, 60), "WassersteinMNPCA": (50, 30)}.get(name, Y.shape)
    return Y[: shape[0], : shape[1]]


def test_twice_the_same_to_the_bit(name):
    X = quick(name)[:60, :30]
    assert digest(make(name).fit(X)) == digest(make(name).fit(X))


def test_n_jobs_does_not_change_a_bit(name):
    if "n_jobs" not in make(name).get_params():
        pytest.skip("has no n_jobs")
    X = quick(name)
    one, two, every = (digest(make(name, n_jobs=jobs).fit(X)) for jobs in (1, 2, -1))
    assert one == two == every


@pytest.mark.filterwarnings("ignore::mnpca.model.whiteness.ModelCheckWarning")
def test_fits_at_once_in_threads_do_not_disturb_each_other(name):
    def fit(start):
        return digest(make(name).fit(Y[start : start + 40, :20]))

    alone = [fit(start) for start in (0, 40, 80)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fit, (0, 40, 80))) == alone


def test_blas_threads_change_rounding_only(name):
    X = quick(name)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(make(name).fit(X))
    one, two = map(fitted, models)
    assert one.keys() == two.keys()
    for key in one:
        a, b = np.asarray(numbers(one[key])), np.asarray(numbers(two[key]))
        assert_allclose(a, b, rtol=0, atol=1e-8 * max(np.abs(a).max(initial=0), 1), err_msg=key)


SCRIPT = """
import hashlib, pathlib, tempfile
import numpy as np
import mnpca
X = np.random.default_rng(3).normal(size=(24, 10))
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "m")
    for name in ("GeneralizedPCA", "MNPCA"):
        getattr(mnpca, name)(n_components=2).fit(X).save(path)
        print(hashlib.sha256(path.read_bytes()).hexdigest())
"""


def test_another_process_and_hash_seed_give_the_same_file(capsys):
    there = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    exec(SCRIPT, {})
    assert capsys.readouterr().out == there.stdout
    assert len(there.stdout.split()) == 2
