"""Every estimator with a loop: stopped anywhere, it resumes to the result it would have had."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.reliability.shared import fitted, make

import mnpca.estimators._files as progress_module
from mnpca.datasets import make_paper_small
from mnpca.persistence import fingerprint

Y = make_paper_small(c=8, seed=1000, n_samples=24, n_features=16, density=0.05).Y
# n_components="auto" nests the fits of many ranks.
VARIANTS = [
    ("LikelihoodMNPCA", {}),
    ("LikelihoodMNPCA", {"low_rank_step": "closed"}),
    ("WassersteinMNPCA", {}),
    ("WassersteinMNPCA", {"method": "gradient"}),
    ("MNPCA", {"noise": "auto", "prior": "auto"}),
    ("MNPCA", {"n_components": "auto"}),
    ("MNPCA", {"noise": "diagonal", "robust": True}),
]


def digest(model):
    return {key: fingerprint(value) for key, value in fitted(model).items()}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "params"), VARIANTS, ids=lambda value: str(value))
def test_resumed_from_any_checkpoint_to_the_bit(name, params, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_module, "WRITE_SHARE", 0.0)
    monkeypatch.setattr(progress_module, "LOSS_SHARE", 0.0)
    params = params | ({"max_iter": 12} if params.get("method") == "gradient" else {})
    path, kept = tmp_path / "fit.ckpt", []

    def keep(progress):
        kept.append(tmp_path / f"{len(kept)}.ckpt")
        os.link(path, kept[-1])

    reference = make(name, **params).fit(Y)
    watched = make(name, **params).fit(Y, checkpoint=path, callback=keep)
    assert digest(watched) == digest(reference)
    assert len(kept) >= 2
    for number in sorted({*np.linspace(0, len(kept) - 1, 3).astype(int)}):
        heard = []
        resumed = make(name, **params).fit(Y, resume_from=kept[number], callback=heard.append)
        assert digest(resumed) == digest(reference), f"resumed from report {number + 1}"
        assert len(heard) <= len(kept) - number, "resuming did work that was already done"


SCRIPT = """
import sys
from mnpca import MNPCA
from mnpca.datasets import make_paper_small
Y = make_paper_small(c=32, seed=1000, n_samples=120, n_features=90).Y
path = sys.argv[1]
MNPCA(n_components=2).fit(Y, checkpoint=path, callback=lambda p: print(p.iteration, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for children on Windows")
def test_ctrl_c_in_a_terminal_leaves_a_checkpoint_and_the_way_on(tmp_path):
    path = tmp_path / "fit.ckpt"
    command = [sys.executable, "-c", SCRIPT, str(path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()
    while not path.exists() and child.poll() is None:  # a signal before that has nothing to leave
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    if child.returncode == 0:
        pytest.skip("the fit was over before the signal came")
    assert "KeyboardInterrupt" in errors
    assert f"resume_from={str(path)!r}" in errors
    assert path.exists()
    assert time.time() - path.stat().st_mtime < 60
