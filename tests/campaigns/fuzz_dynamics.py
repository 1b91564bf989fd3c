"""Fits of awkward trajectories: does every one end in time in a system that works, or in a clear error?

    python tests/campaigns/fuzz_dynamics.py --fits 500 --first 0

The number draws the trajectories: one to six states, 3 to 300 times in one to three runs, scales from 1e-20 to 1e20,
gaps, constant states, repeated readings, noise, irregular times, controls, maps, lags, second orders, known parts, a
hidden state, functions of one's own, sizes, complexities, units, a conserved quantity. Each system is then printed,
integrated, scored and exported. A fit fails if anything but a `ShineError` or a `ValueError` of one line leaves it, if
a warning other than Shine's leaks, or if it takes more than 1.1 times its limit plus a second of the processor, also
the second time: the first fit with some primitives compiles a machine for them, once on a computer.
``--first N --fits 1 --verbose`` repeats one.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import shine
from shine.base.errors import InterruptedFitWarning, SamplingWarning, ShineError

Array = np.ndarray

SLACK = 1.0
"""Seconds of the processor beyond 1.1 times the limit."""


@dataclass
class Case:
    """What a user gives."""

    estimator: dict[str, Any]
    fit: dict[str, Any]
    notes: str


def motion(random: np.random.Generator, times: Array, states: int) -> Array:
    """States over some times: swings, growth, steps, chaos of a map, or plain noise."""
    kind = random.integers(5)
    scaled = (times - times[0]) / (times[-1] - times[0])
    speeds, phases = random.uniform(0.3, 12, states), random.uniform(0, 6, states)
    if kind == 0:
        return np.sin(speeds * scaled[:, None] + phases)
    if kind == 1:
        return np.exp(random.uniform(-3, 3, states) * scaled[:, None]) + phases
    if kind == 2:
        return np.floor(speeds * scaled[:, None]) + scaled[:, None]
    if kind == 3:
        found = np.full((len(times), states), 0.1 + 0.1 * np.arange(states))
        for step in range(1, len(times)):
            found[step] = 3.8 * found[step - 1] * (1 - found[step - 1])
        return found
    return random.standard_normal((len(times), states))


def case(number: int) -> Case:
    """The case of a number."""
    random = np.random.default_rng([33, number])
    states, runs = int(random.integers(1, 7)), int(random.choice([1, 1, 1, 2, 3]))
    counts = [round(3 * 100 ** random.uniform()) for _ in range(runs)]
    scale = 10.0 ** random.uniform(-20, 20, states) if random.uniform() < 0.5 else np.ones(states)
    step = 10.0 ** random.uniform(-20, 20) if random.uniform() < 0.3 else 1.0
    flags = {
        name: random.uniform() < share
        for name, share in {
            "gaps": 0.3,
            "constant": 0.1,
            "repeated": 0.1,
            "held": 0.15,
            "noise": 0.4,
            "irregular": 0.3,
            "controls": 0.2,
            "map": 0.2,
            "time": 0.15,
            "further": 0.25,
            "template": 0.15,
        }.items()
    }
    tables, clocks, inputs = [], [], []
    for count in counts:
        times = np.arange(count, dtype=float)
        if flags["irregular"] and not flags["map"]:
            times = np.sort(random.uniform(0, count, count))
        x = motion(random, times, states)
        if flags["noise"]:
            x = x + 0.05 * x.std() * random.standard_normal(x.shape)
        if flags["held"]:
            x[count // 3 : 2 * count // 3] = x[count // 3]
        if flags["constant"]:
            x[:, random.integers(states)] = 1.5
        if flags["gaps"]:
            x[random.uniform(size=x.shape) < random.choice([0.1, 0.5])] = np.nan
        if flags["repeated"]:
            place = int(random.integers(1, count))
            times[place] = times[place - 1]
        tables.append(x * scale)
        clocks.append(times * step)
        inputs.append(np.cos(times)[:, None])
    several = runs > 1
    fit: dict[str, Any] = {"x": tables if several else tables[0], "t": clocks if several else clocks[0]}
    if flags["controls"]:
        fit["u"] = inputs if several else inputs[0]
    estimator = {
        "max_time": float(random.choice([0.5, 1.0, 2.0, 4.0])),
        "kind": "map" if flags["map"] else "ode",
        "autonomous": not flags["time"],
        "lags": int(random.integers(1, 4)) if flags["map"] and flags["further"] else 0,
        "order": 2 if flags["further"] and not flags["map"] else 1,
        "n_jobs": 1,
        "random_state": number,
    }
    if flags["template"]:
        left = "x0[k+1]" if flags["map"] else "x0" + "'" * estimator["order"]
        estimator["template"] = f"{left} = {random.choice(['f(x0) - c[run]*x0', 'c*x0 + d', 'f(x0)'])}"
        fit["states"] = [f"x{place}" for place in range(states)]
    if number % 4 == 0 and not flags["template"] and not flags["map"]:
        estimator |= {"hidden": 1, "order": 1}
    bare = not (flags["template"] or flags["map"] or flags["further"] or "hidden" in estimator)
    estimator |= settings(np.random.default_rng([34, number]), states, bare)
    names = ", ".join(name for name, there in flags.items() if there)
    return Case(estimator, fit, f"{states} states, {counts} times, limit {estimator['max_time']}; {names}")


def hill(x: float) -> float:
    """A function of a user."""
    return x / (1 + x * x)


OWN = "def heat(a, b): return a * b + 1 if a > b else exp(a)"

PRIMITIVES: list[list[Any]] = [
    ["add", "mul"],
    ["+", "-", "*", "/", "np.sin", hill],
    ["add", "sub", "mul", "div", OWN],
    ["add", "sub", "mul", "div", "sqrt", "exp", "log", "sin", "pow", hill, OWN],
    ["sub", "where", "gt", "min", "abs", "square", "cube"],
    [hill, OWN],
]


def settings(random: np.random.Generator, states: int, bare: bool) -> dict[str, Any]:
    """Settings of the searches, in half of the cases; units or a quantity that stays go with `bare` forms only."""
    if random.uniform() < 0.5:
        return {}
    found: dict[str, Any] = {"primitives": PRIMITIVES[random.integers(len(PRIMITIVES))]}
    found["max_size"], found["max_depth"] = int(random.choice([1, 3, 8, 40])), int(random.choice([1, 3, 10]))
    found["population_size"], found["parsimony"] = int(random.choice([2, 10, 300])), float(random.choice([0.0, 0.5]))
    others = [
        {},
        {"complexity": {"constant": 3.0}},
        {"seeding": 0.0},
        {"islands": 2, "stagnation": None},
        {"evidence": 9},
    ]
    found["settings"] = others[random.integers(len(others))]
    if bare and random.uniform() < 0.3:
        found["units"] = {"t": "s"} | {f"x{place}": "m" for place in range(states)}
    elif bare and states > 1 and random.uniform() < 0.5:
        found["conserve"] = str(random.choice(["x0 + x1", "x0*x1", "x0**2 + cos(x1)", "log(x0)", "1"]))
    return found


def used(model: Any, made: Case) -> None:
    """All that a user does with a fitted model; values are compared with what they mean."""
    given = (made.fit.get(name) for name in ("x", "t", "u"))
    x0, times, controls = (each[0] if isinstance(each, list) else each for each in given)
    assert len(model.front_) and repr(model), "nothing is shown"
    filled, depth = np.where(np.isnan(x0), 0.0, x0), model.lags + model.order
    run = model.best_.runs[0] if model.best_.runs else None
    start = filled[0] if depth == 1 else np.resize(filled, (depth, x0.shape[1]))
    further, index = 0 if model.best_.hidden is None else 1, model.front_.best_index
    first, filled = start, np.pad(filled, ((0, 0), (0, further)))
    start = np.append(start, model.best_.starts[0, -1]) if further else start
    found, deviations = model.simulate(start, times, controls, run=run, return_std=True, index=index)
    assert found.shape == x0.shape == deviations.shape, "shapes"
    np.testing.assert_array_equal(found[0], first if depth == 1 else first[0] if model.order == 2 else first[-1])
    wide = np.concatenate([filled, filled], axis=1) if model.order == 2 else filled
    assert model.predict(wide, controls, times, run=run, index=index).shape == (len(x0), x0.shape[1] + further), "rates"
    if not np.isnan(x0).any():
        assert model.score(made.fit["x"], made.fit["t"], made.fit.get("u"), index=index) <= 1.0, "a score above 1"
    model.conf_int(), model.conserved()
    for form in ("python", "c", "julia", "latex"):
        assert model.export(form, run=run, index=index), form


def outcome(made: Case) -> tuple[str, str, float]:
    """Verdict, text, and seconds of the processor beyond 1.1 times the limit."""
    limit = made.estimator["max_time"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = shine.SymbolicDynamics(**made.estimator)
        began = time.process_time()
        try:
            model.fit(**made.fit)
            over = time.process_time() - began - 1.1 * limit
            used(model, made)
            verdict, text = "fitted", ""
        except (ShineError, ValueError) as error:
            over = time.process_time() - began - 1.1 * limit
            meant = "raise" in (traceback.extract_tb(error.__traceback__)[-1].line or "")
            clear = meant and "\n" not in str(error)
            verdict, text = (
                ("error", str(error)) if clear else ("FAILED", " | ".join(traceback.format_exc().splitlines()[-3:]))
            )
        except Exception:
            over, verdict, text = (
                time.process_time() - began - 1.1 * limit,
                "FAILED",
                " | ".join(traceback.format_exc().splitlines()[-3:]),
            )
    leaked = [each for each in caught if not issubclass(each.category, SamplingWarning | InterruptedFitWarning)]
    if leaked:
        verdict, text = "FAILED", f"warning {leaked[0].category.__name__}: {leaked[0].message}"
    if over > SLACK:
        verdict, text = "FAILED", f"TIME: {over:.2f} s beyond 1.1 times {limit} s of the processor. {text}"
    return verdict, text, over


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="begin no fit after these seconds")
    parser.add_argument("--verbose", action="store_true", help="print each case")
    options = parser.parse_args()
    table: collections.Counter[str] = collections.Counter()
    said: collections.Counter[str] = collections.Counter()
    # The first fit of a process imports the search.
    shine.SymbolicDynamics(max_time=0.5, random_state=0).fit(np.sin(np.arange(9.0)), states=["x"])
    overs, began = [], time.monotonic()
    for number in range(options.first, options.first + options.fits):
        if options.seconds is not None and time.monotonic() - began > options.seconds:
            print(f"ended before {number}")
            break
        made = case(number)
        verdict, text, over = outcome(made)
        if over > SLACK:
            verdict, text, over = outcome(made)
        table[verdict] += 1
        overs.append(over)
        if verdict == "error":
            said[re.sub(r"-?\d[\d.e+-]*", "#", text)[:110]] += 1
        if verdict == "FAILED" or options.verbose:
            print(f"--first {number} ({made.notes}): {verdict} {text} [{over:.2f} s]", flush=True)
    print("\n".join(f"{count:6} x {text}" for text, count in said.most_common(20)))
    print("beyond 1.1 times the limit: 90 % {:.2f} s, most {:.2f} s".format(*np.quantile(overs, [0.9, 1])))
    print(f"{sum(table.values())} fits: {dict(table)} in {time.monotonic() - began:.0f} s")
    return int(table["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
