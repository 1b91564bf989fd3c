"""A watched search: what it tells, what it lets in, how it pauses and ends. Nothing else of it changes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from shine.base.errors import ShineError
from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.faces.live import watch as module
from shine.faces.live.watch import Controls, Watch, judged
from shine.search.evolution.observers import Observers
from shine.search.run import search

X = np.random.default_rng(0).uniform(1, 3, (40, 2))
DATA = Dataset.from_arrays(X, np.sin(3 * X[:, 0] * X[:, 1]) + X[:, 1], features=("a", "b"))
LAW = "sin(3*a*b) + b"


def settings(**options):
    """Those of a small search that does not find the law by itself."""
    given = {
        "primitives": ["add", "mul", "sin"], "population": 40, "max_size": 15, "islands": 2, "seeding": 0,
        "migration_interval": 1,
        "noise": "absolute", "tier": "machine", "threads": 1, "generations": 6, "seconds": None, "stagnation": None,
        **options,
    }  # fmt: skip
    return settings_from(**given)


def watched(watch, act=lambda generation: None, dataset=DATA, find=search, **options):
    """The result of a search, in which something is done after each generation."""
    return find(dataset, settings(**options), Observers(lambda progress: act(progress.generation), watch))


@pytest.fixture
def changes():
    return []


@pytest.fixture
def controls(changes):
    return Controls(changes.append)


def formulas(result):
    return [(str(model.tree), model.loss) for model in result.front]


@pytest.mark.slow
def test_a_search_is_the_same_whether_it_is_watched_or_not(controls):
    assert formulas(watched(Watch(controls))) == formulas(watched(None))


@pytest.mark.slow
def test_a_pause_changes_nothing_but_the_time(controls):
    watch = Watch(controls)

    def act(generation):
        if generation == 2:
            controls.pause(True)
            threading.Thread(target=resume).start()

    def resume():
        while not watch.moment().held:
            pass
        assert watch.moment().state.generation == 2
        controls.pause(False)

    assert formulas(watched(watch, act)) == formulas(watched(None))
    assert not watch.moment().held


@pytest.mark.slow
@pytest.mark.parametrize("paused", [False, True])
def test_a_stop_ends_the_search_with_its_result(controls, paused):
    watch = Watch(controls)

    def act(generation):
        if generation == 3:
            controls.paused = paused
            controls.stop()

    result = watched(watch, act)
    assert (result.generations, result.stopped_by) == (3, "callback")
    assert len(result.front) > 1


def test_ctrl_c_ends_a_paused_search_with_its_result(controls, monkeypatch):
    controls.paused = True

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(controls.condition, "wait", interrupt)
    result = watched(Watch(controls))
    assert (result.generations, result.stopped_by) == (0, "interrupted")


def test_a_formula_that_is_put_in_joins_and_is_on_the_front(controls, changes):
    watch, seen = Watch(controls), []

    def act(generation):
        if generation == 2:
            watch.put_in(LAW)
            assert watch.moment().put_in[0].generation is None
        if generation == 3:
            moment = watch.moment()
            seen.append(judged(moment.put_in[0], moment.state, moment.place))
            assert watch.joined() == (LAW,)

    result = watched(watch, act, stop_loss=0.0, generations=4)
    assert (seen[0].generation, seen[0].on_front) == (3, True)
    assert seen[0].loss < 1e-25
    assert result.best.r2 > 1 - 1e-12
    assert watch.joined() == ()
    assert changes.count(True) == 2  # it was put in, and it joined


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("foo(a)", "unknown primitive 'foo'"),
        ("a + zz", "zz"),
        ("cos(a)", "'cos' is not in the primitive set"),
        ("a +", "line 1"),
        ("a; import os", "line 1"),
        ("", "line 1|empty|formula"),
        ("+".join("a" * 30), "has 59 nodes, and max_size is 15"),
        ("(" * 5000 + "a" + ")" * 5000, "line 1|nested|parentheses"),
        ("-" * 5000 + "a", "nodes|line 1|nested"),
        ("/etc/passwd.pb", "line 1"),
        ("__import__('os').system('true')", "line 1"),
    ],
)
def test_a_formula_of_another_search_is_refused_as_a_guess_is(controls, formula, message):
    watch = Watch(controls)

    def act(generation):
        with pytest.raises((ShineError, TypeError, ValueError), match=message):
            watch.put_in(formula)

    watched(watch, act, generations=0)
    assert watch.moment().put_in == ()


def test_a_forbidden_feature_is_refused(controls):
    watch = Watch(controls)

    def act(generation):
        with pytest.raises(ValueError, match="the constraints forbid 'b'"):
            watch.put_in("a*b")

    watched(watch, act, generations=0, constraints={"forbidden": ["b"]})


def test_no_formula_joins_before_the_search_begins_and_not_too_many(controls, monkeypatch):
    watch = Watch(controls)
    with pytest.raises(ValueError, match="has not begun"):
        watch.put_in("a")
    monkeypatch.setattr(module, "MOST_WAITING", 2)

    def act(generation):
        watch.put_in("a")
        watch.put_in("b")
        with pytest.raises(ValueError, match="2 formulas are waiting already"):
            watch.put_in("a*b")

    watched(watch, act, generations=0)


def test_constants_of_a_formula_in_given_units_are_those_of_the_page(controls):
    """Large values are scaled in the search, which a user does not see."""
    watch, seen = Watch(controls), []
    far = Dataset.from_arrays(1e6 * X, 1e9 * (np.sin(3 * X[:, 0] * X[:, 1]) + X[:, 1]), features=("a", "b"))

    def act(generation):
        if generation == 1:
            watch.put_in("sin(3e-12*a*b) + 1e-6*b")
        if generation == 2:
            moment = watch.moment()
            formula = judged(moment.put_in[0], moment.state, moment.place)
            front = moment.place.shown(*moment.state.archive.front(moment.place.enough))
            best = front.models[-1]
            seen.append((formula.on_front, formula.loss, best.loss, best.r2))
            assert np.allclose(best.predict(far.columns.T), far.target, rtol=1e-9)

    watched(watch, act, far, generations=3)
    on_front, loss, best, share = seen[0]
    assert on_front
    assert loss < 1e-6
    assert best < 1e-6
    assert share > 1 - 1e-12
