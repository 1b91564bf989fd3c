"""Ctrl-C during `fit`: the user keeps the result, with a warning; a program that fits clones gets the interrupt."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers.markers import mostly_slow
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shine.base.errors import InterruptedFitWarning
from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer

ROOT = Path(__file__).resolve().parents[4]
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (40, 2))
Y = RNG.normal(size=40)
CLASSES = np.arange(40) % 2
KINDS = {"regressor": (SymbolicRegressor, Y), "classifier": (SymbolicClassifier, CLASSES),
         "transformer": (SymbolicTransformer, Y)}  # fmt: skip


def interrupt_at(generation, times=1):
    """A callback that acts like Ctrl-C a number of times."""
    left = [times]

    def callback(progress):
        if progress.generation >= generation and left[0]:
            left[0] -= 1
            raise KeyboardInterrupt

    return callback


def endless(kind, callbacks=(), **options):
    options = {"population_size": 20, "max_size": 6, "generations": 10**6, "max_time": None, "stop_loss": 0.0} | options
    return kind(settings={"seeding": 0.0}, random_state=0, n_jobs=1, callbacks=callbacks, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_fit_of_the_users_own_keeps_what_it_found_and_warns(name):
    kind, y = KINDS[name]
    model = endless(kind, interrupt_at(3))
    with pytest.warns(
        InterruptedFitWarning, match=r"after 3 generations, .* set warm_start=True and fit again"
    ) as told:
        assert model.fit(X, y) is model
    assert [Path(str(each.filename)).name for each in told] == [Path(__file__).name]
    assert (model.stopped_by_, model.generations_) == ("interrupted", 3)
    model.set_params(warm_start=True, callbacks=lambda progress: progress.generation == 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert (model.stopped_by_, model.generations_) == ("callback", 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_clone_raises_and_is_as_it_was(name):
    kind, y = KINDS[name]
    model = clone(endless(kind, interrupt_at(1)))
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before
    with pytest.raises(KeyboardInterrupt):
        pickle.loads(pickle.dumps(clone(endless(kind)))).set_params(callbacks=interrupt_at(1)).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_fit_that_fails_leaves_the_earlier_one(name):
    kind, y = KINDS[name]
    model = endless(kind, generations=1).fit(X, y)
    predicted = (model.transform if name == "transformer" else model.predict)(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="unknown primitive"):
        model.set_params(primitives=["plus"]).fit(X[:, :1], np.where(y > 0, 7, 8))
    assert {**vars(model), "primitives": before["primitives"]} == before
    again = (model.transform if name == "transformer" else model.predict)(X)
    assert again.tobytes() == predicted.tobytes()


def test_a_pipeline_of_the_users_own_keeps_what_it_found():
    model = make_pipeline(StandardScaler(), endless(SymbolicRegressor, interrupt_at(2)))
    with pytest.warns(InterruptedFitWarning):
        model.fit(X, Y)
    assert model[-1].generations_ == 2


def test_a_second_interrupt_raises_whatever_it_is_in():
    model = endless(SymbolicRegressor, interrupt_at(0, times=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, np.column_stack([Y, -Y, Y + 1]))
    assert not hasattr(model, "front_")


def test_an_interrupted_fit_of_several_targets_has_a_formula_for_each():
    model = endless(SymbolicRegressor, interrupt_at(2))
    with pytest.warns(InterruptedFitWarning, match="after 2 generations"):
        model.fit(X, np.column_stack([Y, -Y]))
    assert model.predict(X).shape == (40, 2)
    assert np.isfinite(model.predict(X)).all()


# With real signals

PROGRAM = f"""
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import warnings
import joblib
import numpy as np
from sklearn.model_selection import GridSearchCV, cross_val_score
from shine.estimators import *

def tell(progress):
    if progress.generation == 2:
        os.write(1, b"searching\\n")  # whole, whichever of several processes writes

def model(kind):
    return kind(population_size=20, max_size=6, generations=10**9, max_time=None, stop_loss=0.0, n_jobs=1,
                settings={{"seeding": 0.0}}, random_state=0, callbacks=tell)

if __name__ == "__main__":
    X, y = {X.tolist()}, {Y.tolist()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", InterruptedFitWarning)
        try:
            result = ACTION
        except KeyboardInterrupt:
            print("raised")
        else:
            print("kept", result.stopped_by_, [each.category.__name__ for each in told])
"""

ACTIONS = {
    "regressor": ("model(SymbolicRegressor).fit(X, y)", "kept"),
    "classifier": ("model(SymbolicClassifier).fit(X, np.arange(40) % 2)", "kept"),
    "joblib": ("joblib.Parallel(2)(joblib.delayed(model(SymbolicRegressor).fit)(X, y) for _ in range(2))", "raised"),
    "grid search": ("GridSearchCV(model(SymbolicRegressor), {'max_size': [4, 6]}, cv=2).fit(X, y)", "raised"),
    "grid search in processes": (
        "GridSearchCV(model(SymbolicRegressor), {'max_size': [4, 6]}, cv=2, n_jobs=2).fit(X, y)", "raised",
    ),
}  # fmt: skip


PARALLEL = ("processes", "joblib")
"""Endings of the names of programs with several processes."""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as Unix has them")
@pytest.mark.parametrize(
    ("name", "to"),
    mostly_slow(
        [(name, to) for name in ACTIONS for to in ("process", "group") if to == "process" or name.endswith(PARALLEL)],
        fast=[("regressor", "process"), ("grid search", "process")],
    ),
)
def test_a_real_signal(name, to, tmp_path):
    if name.endswith(PARALLEL) and not shutil.which("pgrep"):
        pytest.skip("joblib ends its workers with the program pgrep")
    action, expected = ACTIONS[name]
    (tmp_path / "program.py").write_text(PROGRAM.replace("ACTION", action))
    options = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "cwd": tmp_path, "text": True, "start_new_session": True}
    command = [sys.executable, "program.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "searching\n"
            # A terminal sends Ctrl-C to all processes of the group.
            (os.kill if to == "process" else os.killpg)(running.pid, signal.SIGINT)
            printed, problem = running.communicate(timeout=60)
        finally:
            # Workers outlive their parent if only the parent got the signal.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    ending = "raised" if expected == "raised" else "kept interrupted ['InterruptedFitWarning']"
    assert [line for line in printed.splitlines() if line != "searching"] == [ending], (running.returncode, problem)
