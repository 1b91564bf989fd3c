"""What a running fit shows: lines of the log, a bar, and the formulas that callbacks receive."""

from __future__ import annotations

import io
import logging

import numpy as np
import pytest

import shine
from shine.estimators import SymbolicClassifier, SymbolicRegressor
from shine.faces import progress
from shine.faces.estimators import fit_searches
from shine.lang.parse import parse

X = np.random.default_rng(0).uniform(1, 5, (60, 2))
A, B = X.T
HARD = np.sin(3 * A) * B + np.log(B)
QUICK = {
    "population_size": 60,
    "generations": 4,
    "max_time": None,
    "primitives": ("add", "sub", "mul"),
    "random_state": 0,
    "n_jobs": 1,
    "settings": {"seeding": 0.0},
    "noise": "absolute",
}


@pytest.fixture(autouse=True)
def no_further_lines(monkeypatch):
    """However slow this machine is, lines tell of events only."""
    monkeypatch.setattr(progress, "PAUSE", np.inf)


def fitted(target=HARD, **parameters):
    return SymbolicRegressor(**QUICK | parameters).fit(X, target)


def generations(caplog):
    """The lines about generations, without those about stages."""
    lines = [record.getMessage() for record in caplog.records if record.name == "shine"]
    return [line for line in lines if line.startswith("generation")]


@pytest.mark.slow
def test_verbose_logs_each_stage_when_it_begins(caplog):
    fitted(verbose=1, generations=1, settings={"seeding": 0.5})
    lines = [record.getMessage() for record in caplog.records if record.name == "shine"]
    assert lines.index("looking for formulas to start from") < lines.index(generations(caplog)[0])


def test_lines_are_shown_even_if_logging_is_not_configured(monkeypatch, capsys):
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda logger: False)
    fitted(verbose=2, generations=1)
    captured = capsys.readouterr()
    assert captured.err.splitlines()[1].startswith("generation    1")
    assert captured.out == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_verbose_1_is_a_bar_that_is_closed_after_an_error_too(monkeypatch, caplog):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    closed = []
    monkeypatch.setattr(fit_searches.SearchBar, "close", lambda bar: (closed.append(bar), bar._bar.close()))
    fitted(verbose=1)
    assert "preparing the rows" in stream.getvalue()
    assert not [record for record in caplog.records if record.name == "shine"]

    def fail(progress):
        raise RuntimeError("of the user")

    with pytest.raises(RuntimeError, match="of the user"):
        fitted(verbose=1, callbacks=fail)
    assert len(closed) == 2


def test_a_callback_receives_the_formula_with_its_line_in_the_names_of_the_data():
    seen = []
    frame_names = ["mass", "speed"]
    result = shine.evolve(
        X, 3 * A * B + 7, features=frame_names, primitives=["mul"], generations=3, seeding=0.0, population=30,
        noise="absolute", report=lambda progress: seen.append(progress.formula),
    )  # fmt: skip
    assert result.best.expression == "3*mass*speed + 7"
    assert seen[-1].replace("(", "").replace(")", "") in ("3*mass*speed + 7", "3*speed*mass + 7")


def test_a_classifier_shows_the_logarithm_of_the_odds():
    seen = []
    model = SymbolicClassifier(**{key: QUICK[key] for key in QUICK.keys() - {"noise"}})
    model.set_params(callbacks=[lambda progress: seen.append(progress.formula)]).fit(X, A > B)
    assert set(parse(seen[-1]).parameters) <= {"x0", "x1"}
