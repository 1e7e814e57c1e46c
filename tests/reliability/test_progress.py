"""Callbacks, checkpoints and resuming: the machinery, on an estimator made for it."""

import os

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mnpca.estimators._files as progress_module
from mnpca.estimators._files import CheckpointError, reported
from mnpca.persistence import ModelFileError
from mnpca.solvers.progress import Progress, silent

X = np.random.default_rng(0).normal(size=(8, 5))


def power_method(matrix, max_iter, report=silent, resume=None):
    """A solver written as the guide in solvers/progress.py says."""
    if resume is None:
        vector, history = np.ones(matrix.shape[1]), []
    else:
        vector, history = resume["vector"], list(resume["history"])
    for iteration in range(len(history) + 1, max_iter + 1):
        vector = matrix.T @ (matrix @ vector)
        history.append(float(np.linalg.norm(vector)))
        vector /= history[-1]
        state = {"vector": vector, "history": history}
        report(Progress("power", iteration, history[-1], lambda state=state: state))
    return vector, history


class Toy(BaseEstimator):
    def __init__(self, max_iter=20, verbose=0, random_state=None):
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y=None, *, callback=None, checkpoint=None, resume_from=None):
        with reported(self, X, callback, checkpoint, resume_from) as (report, resume):
            self.vector_, self.history_ = power_method(X, self.max_iter, report, resume)
        return self


class Stop(BaseException):
    """Ends a fit from its callback, as a kill would."""


def stop_at(iteration, error=Stop):
    def callback(progress):
        if progress.iteration == iteration:
            raise error

    return callback


@pytest.fixture
def eager(monkeypatch):
    """Write a checkpoint at every report."""
    monkeypatch.setattr(progress_module, "WRITE_SHARE", 0.0)
    monkeypatch.setattr(progress_module, "LOSS_SHARE", 0.0)


def test_the_callback_hears_every_iteration():
    heard = []
    Toy().fit(X, callback=lambda p: heard.append((p.stage, p.iteration, p.objective)))
    assert [iteration for _, iteration, _ in heard] == list(range(1, 21))
    assert heard[-1][2] == Toy().fit(X).history_[-1]


@pytest.mark.usefixtures("eager")
def test_ctrl_c_says_how_to_go_on(tmp_path):
    path = tmp_path / "fit.ckpt"
    with pytest.raises(KeyboardInterrupt) as caught:
        Toy().fit(X, checkpoint=path, callback=stop_at(5, KeyboardInterrupt))
    (note,) = caught.value.__notes__
    assert "iteration 5" in note
    assert f"fit(X, checkpoint={str(path)!r}, resume_from={str(path)!r})" in note
    assert path.exists()


def test_ctrl_c_before_the_first_checkpoint_says_so(tmp_path):
    model = Toy()
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        reported(model, X, None, tmp_path / "fit.ckpt", None),
    ):
        raise KeyboardInterrupt
    assert "before its first checkpoint" in caught.value.__notes__[0]


@pytest.fixture
def checkpoint(tmp_path, eager):
    path = tmp_path / "fit.ckpt"
    with pytest.raises(Stop):
        Toy(random_state=np.random.RandomState(3)).fit(X, checkpoint=path, callback=stop_at(5))
    return path


def test_other_data_parameters_or_classes_are_refused(checkpoint):
    seeded = Toy(random_state=np.random.RandomState(3))
    seeded.fit(np.asfortranarray(X), resume_from=checkpoint)
    with pytest.raises(CheckpointError, match="other data"):
        seeded.fit(X + 1e-15, resume_from=checkpoint)
    with pytest.raises(CheckpointError, match="other parameters: max_iter, random_state"):
        Toy(max_iter=3).fit(X, resume_from=checkpoint)

    class Other(Toy):
        pass

    with pytest.raises(CheckpointError, match="of a Toy, this is a Other"):
        Other().fit(X, resume_from=checkpoint)


def test_only_checkpoints_are_written_over(tmp_path, eager):
    """Not the data, not a model; what is empty or a damaged checkpoint may go."""
    path = tmp_path / "file"
    for content in (b"a,b\n1,2\n", b'PK document.json "kind": "model"'):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is no checkpoint, so it is not written over"):
            Toy().fit(X, checkpoint=path)
        assert path.read_bytes() == content
    path.write_bytes(b"")
    Toy().fit(X, checkpoint=path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    Toy().fit(X, checkpoint=path)
    assert path.read_bytes() == whole


def test_verbose_may_change(checkpoint, capsys):
    model = Toy(random_state=np.random.RandomState(3), verbose=1).fit(X, resume_from=checkpoint)
    assert model.history_ == Toy().fit(X).history_
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 15  # iterations 6 to 20


def test_a_damaged_or_missing_checkpoint_is_refused(checkpoint):
    checkpoint.write_bytes(checkpoint.read_bytes()[:-30])
    with pytest.raises(ModelFileError):
        Toy().fit(X, resume_from=checkpoint)
    with pytest.raises(FileNotFoundError):
        Toy().fit(X, resume_from=checkpoint.with_name("none"))


def test_checkpoints_cost_a_small_share_of_the_time(tmp_path, monkeypatch):
    """By a clock of our own: an iteration lasts 1 s, a write 0.5 s, so one in ten is stored."""
    now = [0.0]
    written = []

    def write(path, kind, version, content):
        now[0] += 0.5
        written.append(content["iteration"])

    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress_module, "write_document", write)

    def second(progress):
        now[0] += 1.0

    Toy(max_iter=3000).fit(X, checkpoint=tmp_path / "c", callback=second)
    early = [iteration for iteration in written if iteration < 150]
    assert early == list(range(1, 150, 10))
    assert set(np.diff(written[-10:])) == {60}


def test_killed_writers_leave_no_litter(tmp_path):
    (tmp_path / ".fit.ckpt.0123.part").touch()
    Toy().fit(X, checkpoint=tmp_path / "fit.ckpt")
    assert os.listdir(tmp_path) == ["fit.ckpt"]
