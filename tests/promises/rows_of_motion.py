"""Rows of the equations of motion."""

from __future__ import annotations

import logging
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from promises.faces import Kept, Told
from promises.table import DYNAMICS, row
from promises.workshop import told
from sklearn.base import clone

import shine

TIMES = np.linspace(0, 4, 60)
DECAY = np.exp(-0.7 * TIMES)[:, None]
SWING = np.column_stack([np.cos(2 * TIMES), -2 * np.sin(2 * TIMES)])
MOTION = {
    "population_size": 60,
    "settings": {"seeding": 0.0, "stagnation": 3},
    "primitives": ["add", "mul"],
    "max_size": 6,
    "max_time": None,
    "n_jobs": 1,
    "random_state": 0,
}


def motion(x: Any = DECAY, t: Any = TIMES, u: Any = None, rows: dict[str, Any] | None = None, **words: Any) -> Any:
    """A fitted system, x' = -0.7*x by default."""
    return shine.SymbolicDynamics(**{**MOTION, **words}).fit(x, t, u, **(rows or {}))


def equations(**words: Any) -> str:
    return str(motion(**words).best_)


@row("x", "t", "states", faces=DYNAMICS, slow=True)
def readings_may_be_arrays_frames_and_lists(face: str) -> None:
    frame = pd.DataFrame({"t": TIMES, "mass": DECAY[:, 0]})
    assert equations(rows={"states": ["mass"]}) == equations(x=frame, t="t")
    assert "mass' = -0.7*mass" in equations(x=frame, t="t")
    assert "-0.7*x0" in equations(t=float(TIMES[1]))
    assert "-0.7*x0" in equations(x=[DECAY, 2 * DECAY], t=[TIMES, TIMES])


@row("run", "sigma", faces=DYNAMICS, slow=True)
def runs_and_noise_are_told(face: str) -> None:
    frame = pd.DataFrame({"t": [*TIMES, *TIMES], "x": [*DECAY[:, 0], *(2 * DECAY[:, 0])], "r": [1] * 60 + [2] * 60})
    assert "-0.7*x" in equations(x=frame, t="t", rows={"run": "r"})
    assert "-0.7*x0" in equations(rows={"sigma": 0.01})
    for wrong in (-1.0, [0.1]):
        with pytest.raises(shine.DataError, match="one for each of the states x0, x1"):
            equations(x=SWING, rows={"sigma": wrong})


@row("u", "controls", "autonomous", faces=DYNAMICS, slow=True)
def rates_depend_on_controls_and_on_the_time_if_they_may(face: str) -> None:
    level = np.cumsum(np.r_[0, np.diff(TIMES) * (TIMES[1:] + TIMES[:-1]) / 2])[:, None]
    assert "x0' = force" in equations(x=level, u=TIMES[:, None], rows={"controls": ["force"]})
    assert "x0' = t" in equations(x=level, autonomous=False)


@row("kind", "lags", faces=DYNAMICS, slow=True)
def maps_tell_of_the_next_step_and_of_earlier_ones(face: str) -> None:
    steps = np.arange(30)
    assert "0.8*x0" in equations(x=0.8 ** steps[:, None] * 5, t=steps, kind="map")
    two = [1.0, 2.0]
    for _ in range(28):
        two.append(1.2 * two[-1] - 0.9 * two[-2])
    assert "x0_lag1" in equations(x=np.array(two)[:, None], t=steps, kind="map", lags=1)


@row("order", faces=DYNAMICS)
def positions_alone_have_second_derivatives(face: str) -> None:
    assert "x0'' = -4*x0" in equations(x=SWING[:, :1], order=2)


@row("hidden", faces=DYNAMICS, slow=True)
def a_hidden_state_has_an_equation(face: str) -> None:
    for hidden, name in ((1, "h"), ("w", "w")):
        assert f"{name}'" in equations(x=SWING[:, :1], hidden=hidden)


@row("template", faces=DYNAMICS)
def a_template_of_motion_is_kept(face: str) -> None:
    for form in ("x0' = -k*x0", {"formula": "x0' = -k*x0", "parameters": {"k": (0, None)}}):
        assert re.search(r"x0' = -0\.70*\d*\*x0", equations(template=form))


@row("conserve", faces=DYNAMICS)
def what_is_conserved_stays(face: str) -> None:
    model = motion(x=SWING, conserve="4*x0**2 + x1**2")
    path = model.simulate({"x0": 1.5, "x1": 0.5}, TIMES)
    kept = 4 * path[:, 0] ** 2 + path[:, 1] ** 2
    np.testing.assert_allclose(kept, kept[0], rtol=1e-3)


@row("units", faces=DYNAMICS)
def equations_agree_with_units(face: str) -> None:
    assert "-0.7*x0" in equations(units={"x0": "m", "t": "s"})
    with pytest.raises(ValueError, match="furlongs"):
        equations(units={"x0": "furlongs", "t": "s"})


@row("primitives", "max_size", "max_depth", faces=DYNAMICS, slow=True)
def rates_have_the_given_functions_and_sizes(face: str) -> None:
    assert "cos(" in equations(x=np.sin(TIMES)[:, None], autonomous=False, primitives=["cos"])
    for bound in ({"max_size": 1}, {"max_depth": 1}):
        tables = motion(**bound).equations_.values()
        assert all(len(re.findall(r"x0", text)) <= 1 for table in tables for text in table["expression"])


@row("population", "parsimony", "settings", faces=DYNAMICS, slow=True)
def settings_reach_the_search_for_each_rate(face: str) -> None:
    seen: list[int] = []
    for words in ({}, {"population_size": 200}, {"settings": {**MOTION["settings"], "islands": 4}}):
        last: list[int] = []
        motion(x=DECAY**2 + DECAY, **words, callbacks=lambda progress, last=last: last.append(progress.evaluations))
        seen.append(max(last))
    assert min(seen[1:]) > seen[0]
    with pytest.raises(ValueError, match="parsimony"):
        motion(parsimony=-1.0)


@row("seconds", "report", faces=DYNAMICS)
def a_fit_of_motion_ends_in_time_and_tells_its_callback(face: str) -> None:
    told: list[str] = []
    model = motion(x=DECAY**2 + DECAY, max_time=5.0, callbacks=Told(told))
    assert (told[0], told[-1]) == ("begin", "end")
    assert model.seconds_ < 60


@row("seed", "threads", faces=DYNAMICS)
def motion_repeats_with_its_seed_on_any_threads(face: str) -> None:
    assert equations() == equations() == equations(n_jobs=2)


@row("executor", faces=DYNAMICS, slow=True)
def rates_that_are_sought_at_the_same_time_are_those_of_one_after_the_other(face: str) -> None:
    alone = equations(x=SWING)
    with ThreadPoolExecutor(2) as executor:
        assert equations(x=SWING, executor=executor) == alone
    assert equations(x=SWING, executor=1) == alone
    with pytest.raises(ValueError, match="executor must be a whole number of at least 1"):
        motion(executor=0)
    unsent = motion(executor=ThreadPoolExecutor(1))
    assert (pickle.loads(pickle.dumps(unsent)).executor, clone(unsent).executor) == (None, unsent.executor)


@row("verbose", faces=DYNAMICS)
def a_fit_of_motion_logs(face: str) -> None:
    kept, logger = Kept(), logging.getLogger("shine")
    logger.addHandler(kept)
    try:
        motion(verbose=0)
        assert not kept.lines
        motion(verbose=2)
        assert kept.lines
    finally:
        logger.removeHandler(kept)


LEVEL = np.cumsum(np.r_[0, np.diff(TIMES) * (TIMES[1:] + TIMES[:-1]) / 2])
STEPS = np.arange(30.0)
SERIES = np.array([1.0, 2.0, *np.zeros(28)])
for _place in range(2, 30):
    SERIES[_place] = 1.2 * SERIES[_place - 1] - 0.9 * SERIES[_place - 2]
FALL = pd.DataFrame({"t": TIMES, "x": DECAY[:, 0]})
TURN = pd.DataFrame({"t": TIMES, "x": SWING[:, 0], "v": SWING[:, 1]})
KEYS: dict[str, tuple[pd.DataFrame, dict[str, Any], str]] = {
    "states": (FALL.assign(other=1.0), {"states": ["x"]}, "x' = -0.7*x"),
    "controls": (pd.DataFrame({"t": TIMES, "x": LEVEL, "force": TIMES}), {"controls": ["force"]}, "x' = force"),
    "autonomous": (pd.DataFrame({"t": TIMES, "x": LEVEL}), {"autonomous": False}, "x' = t"),
    "run": (pd.concat([FALL.assign(r="a"), FALL.assign(r="b", x=2 * FALL["x"])]), {"run": "r"}, "x' = -0.7*x"),
    "kind": (pd.DataFrame({"t": STEPS, "x": 5 * 0.8**STEPS}), {"kind": "map"}, "0.8*x"),
    "lags": (pd.DataFrame({"t": STEPS, "x": SERIES}), {"kind": "map", "lags": 1}, "x_lag1"),
    "order": (TURN[["t", "x"]], {"order": 2}, "x'' = -4*x"),
    "hidden": (TURN[["t", "x"]], {"hidden": 1}, "h' = "),
    "template": (FALL, {"template": "x' = -k*x"}, "x' = -0.7"),
    "conserve": (TURN, {"conserve": "4*x**2 + v**2"}, "v' = "),
    "units": (FALL, {"units": {"x": "m", "t": "s"}}, "x' = -0.7*x"),
}
"""By the key of `dynamics` that they need: readings, keys, and what an equation then is."""


def _of_file(key: str) -> Any:
    """The effect of a key of `dynamics`: the command line finds the equation."""

    def effect(face: str) -> None:
        table, keys, equation = KEYS[key]
        table.to_csv("motion.csv", index=False)
        document = {
            "data": {"path": "motion.csv"},
            "primitives": ["add", "mul"],
            "dynamics": {"time": "t", **keys},
            "evolution": {"population": 60, "max_size": 6, "seeding": 0.0},
            "stop": {"stagnation": 3, "seconds": None},
            "fitness": {"threads": 1},
        }
        Path("motion.yaml").write_text(yaml.safe_dump(document))
        assert equation in told("evolve", "motion.yaml")

    effect.__name__ = f"a_file_has_motion_with_{key}"
    return effect


for _key in KEYS:
    row("dynamics", "dynamics.time", f"dynamics.{_key}", faces=("config",), slow=_key != "states")(_of_file(_key))
