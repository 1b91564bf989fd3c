"""What a running fit shows: lines of the log, a bar, and the formulas that callbacks receive."""

from __future__ import annotations

import io
import logging
import time
from contextlib import nullcontext

import numpy as np
import pytest

import shine
from shine.base.stages import Stages, so_far, stage
from shine.estimators import SymbolicClassifier, SymbolicRegressor
from shine.faces import progress
from shine.faces.estimators import fit_searches
from shine.faces.progress import Status
from shine.lang.parse import parse
from shine.search.evolution.settings import StopSettings

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


def test_in_a_long_stage_a_line_a_second_tells_what_it_has_found(monkeypatch, caplog):
    now, ticks = [100.0], []
    monkeypatch.setattr(progress, "PAUSE", 1.0)
    monkeypatch.setattr(fit_searches, "ticking", lambda tick: (ticks.append(tick), nullcontext())[1])
    stop = StopSettings(None, 60.0)
    with fit_searches.reporter(None, 1, "", stop, lambda: now[0]):
        now[0] += 1
        ticks[0]()
        with stage("looking"):
            look(now, ticks[0])
    lines = [record.getMessage() for record in caplog.records if record.name == "shine"]
    best = "R2 0.9, x + y"
    assert lines == [
        "preparing the rows, 1 s",
        "looking",
        "looking, 2 s",
        "looking, 3 s: R2 0.5, x",
        f"looking, 4 s: {best}",
        f"looking, 601 s: {best}",
    ]


def look(now, tick):
    """A long stage that finds formulas."""
    for found in (None, "R2 0.5, x", "R2 0.9, x + y"):
        if found:
            so_far(lambda found=found: found)
        now[0] += 1
        tick()
        now[0] += 0.25
        tick()
    now[0] += 596.25
    tick()
    now[0] += 2
    tick()


@pytest.mark.slow
def test_a_thread_tells_of_a_search_that_is_busy_at_least_every_second_and_a_quarter(monkeypatch, caplog):
    monkeypatch.setattr(progress, "PAUSE", 1.0)
    begun = time.monotonic()
    with fit_searches.reporter(None, 1, "", StopSettings(None, 60.0)), stage("looking"):
        while time.monotonic() - begun < 3.5:  # holds the interpreter, as native calls do not
            pass
    times = [record.created for record in caplog.records if record.name == "shine"]
    assert len(times) == 4 and np.diff(times).max() < 1.6


def test_a_fit_tells_of_the_best_formula_of_its_stages(monkeypatch):
    texts = {}
    real = Stages.find

    def find(stages, text):
        real(stages, text)
        texts.setdefault(stages.text().partition(":")[0], []).append(stages.text())

    monkeypatch.setattr(Stages, "find", find)
    plain = fitted(3 * A * B + 2, generations=1, settings={"seeding": 0.5})
    assert not texts
    told = fitted(3 * A * B + 2, verbose=1, generations=1, settings={"seeding": 0.5})
    assert texts["looking for formulas to start from"][-1].endswith("R2 1, 3*(x0*x1) + 2")
    assert texts["refining the best formulas"][-1].endswith("3*(x0*x1) + 2")
    assert told.equations_.to_dict() == plain.equations_.to_dict()


def test_the_bar_moves_with_time_and_with_generations():
    now = [0.0]
    status = Status(StopSettings(10, 50.0), lambda: now[0])
    status.stages.enter("looking")
    shares = []
    for now[0] in (5.0, 20.0, 80.0):
        shares.append(status.share)
    assert shares == [0.1, 0.4, 1.0]
    assert Status(StopSettings(10, None), lambda: now[0]).share == 0.0
    assert Status(None, lambda: now[0]).share == 0.0


def test_verbose_2_logs_a_line_in_every_generation(caplog):
    fitted(verbose=2)
    lines = generations(caplog)
    assert len(lines) == 5
    assert all(line.startswith(f"generation {number:>4}") for number, line in enumerate(lines))
    assert {record.levelno for record in caplog.records if record.name == "shine"} == {logging.INFO}


@pytest.mark.slow
def test_verbose_1_logs_a_line_whenever_the_loss_falls(caplog):
    losses = []
    fitted(verbose=1, callbacks=lambda progress: losses.append(progress.best_loss))
    falls = sum(after < min(losses[:position], default=np.inf) for position, after in enumerate(losses))
    assert len(generations(caplog)) == falls
    caplog.clear()
    fitted(verbose=0)
    assert not [record for record in caplog.records if record.name == "shine"]


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


@pytest.mark.slow
def test_the_formula_is_in_the_units_of_data_that_are_scaled():
    seen = []
    shine.evolve(
        X * 1e200, 3e150 * A * A, primitives=["mul"], generations=3, seeding=0.0, population=30, seconds=None,
        noise="absolute", report=lambda progress: seen.append((progress.formula, progress.best_loss)),
    )  # fmt: skip
    formula, _ = seen[-1]
    with np.errstate(all="ignore"):
        tree = parse(formula, ["x0", "x1"])
    values = shine.jit(tree)(*(X * 1e200).T)
    assert np.allclose(values, 3e150 * A * A, rtol=1e-3)


def test_the_formula_is_written_only_if_it_is_asked_for(monkeypatch):
    written = []
    monkeypatch.setattr("shine.search.models.user_units.with_line", lambda *tree: written.append(tree))
    fitted(generations=1, callbacks=lambda progress: None)
    assert not written


def test_a_classifier_shows_the_logarithm_of_the_odds():
    seen = []
    model = SymbolicClassifier(**{key: QUICK[key] for key in QUICK.keys() - {"noise"}})
    model.set_params(callbacks=[lambda progress: seen.append(progress.formula)]).fit(X, A > B)
    assert set(parse(seen[-1]).parameters) <= {"x0", "x1"}
