"""Rows of the limits of a search and the language of its formulas."""

from __future__ import annotations

import math
import operator
import re
from typing import Any

import numpy as np
import pytest
from promises.faces import LAW, X, Y, calculated, occurrences, same, search
from promises.table import FITTED, PYTHON, row

import shine


@row("generations")
def generations_bind(face: str) -> None:
    for count in (0, 3):
        found = search(face, generations=count)
        # The estimator of features sums over its searches.
        assert found.generations % count == 0 if count and face == "SymbolicTransformer" else found.generations == count
        assert found.stopped_by == "generations"


@row("population")
def a_larger_population_evaluates_more(face: str) -> None:
    assert search(face, population=20).evaluations < search(face, population=80).evaluations


@row("max_size")
def max_size_bounds_the_leaves(face: str) -> None:
    for size in (1, 3, 5):
        found = search(face, max_size=size)
        assert all(len(re.findall(r"x\d", text)) <= (size + 1) // 2 for text in found.expressions), found.expressions


@row("max_depth")
def max_depth_bounds_the_levels(face: str) -> None:
    for text in search(face, max_depth=2, max_size=15).expressions:
        assert len(re.findall(r"x\d", text)) <= 2, text


@row("seconds")
def seconds_end_the_search_and_none_does_not(face: str) -> None:
    found = search(face, generations=None, seconds=0.3, stop_loss=0.0, stagnation=None)
    assert found.stopped_by == "seconds"
    assert found.seconds < 20
    assert search(face, seconds=None).stopped_by == "generations"


@row("stop_loss")
def a_loss_that_is_good_enough_ends_the_search(face: str) -> None:
    assert search(face, stop_loss=1.0, generations=50).stopped_by == "loss"


@row("stagnation", faces=("evolve", "config"))
def a_search_that_finds_nothing_better_ends(face: str) -> None:
    found = search(face, stagnation=2, generations=500, primitives=["add"], max_size=3, stop_loss=0.0)
    assert found.stopped_by == "stagnation"


@row("seed")
def the_seed_decides(face: str) -> None:
    assert same(face, {"seed": 1}, {"seed": 1})
    assert len({str(search(face, seed=seed, max_size=15).front) for seed in range(4)}) > 1


@row("threads")
def the_number_of_threads_changes_nothing(face: str) -> None:
    assert same(face, {"threads": 1}, {"threads": 2})


@row("primitives")
def primitives_are_the_functions_of_formulas_in_every_form(face: str) -> None:
    y = 9 * np.cos(X[:, 0]) + X[:, 1]
    found = search(face, y=y, primitives=["add", "cos"])
    assert occurrences(found.expressions, "cos(") > 0
    assert occurrences(found.expressions, "sin(") == 0
    assert search(face, y=y, primitives=["+", "np.cos"]).front == found.front
    if face != "config":
        for forms in ([operator.add, math.cos], (np.add, np.cos), ["operator.add", "math.cos"]):
            assert search(face, y=y, primitives=forms).front == found.front
    own = search(face, y=9 * np.hypot(*X.T), primitives=["def leg(a, b): return sqrt(a*a + b*b)"])
    assert occurrences(own.expressions, "leg(") > 0


def _law(x0: float, x1: float) -> float:
    return x0 * x1 + math.sin(x0)


@row("guesses")
def a_guess_is_in_the_first_population_in_every_form(face: str) -> None:
    forms: list[Any] = [LAW, f"3.0*({LAW}) + 1.0", "x1*x0 + np.sin(x0)", f"lambda x1, x0: {LAW}"]
    if face != "config":
        forms += [_law, lambda x1, x0: x0 * x1 + math.sin(x0)]
    first = {"generations": 0, "population": 5, "max_size": 15}
    assert occurrences(search(face, **first).expressions, "sin(x0)") == 0
    for guess in forms:
        assert occurrences(search(face, guesses=[guess], **first).expressions, "sin(x0)") > 0, guess


@row("constraints", faces=PYTHON)
def constraints_take_a_mapping_or_an_object(face: str) -> None:
    for form in ({"forbidden": ["x1"]}, shine.Constraints(forbidden=("x1",))):
        assert occurrences(search(face, constraints=form).expressions, "x1") == 0


@row("constraints.forbidden", "constraints.required", faces=("config",))
def features_are_forbidden_and_required(face: str) -> None:
    assert occurrences(search(face, constraints={"forbidden": ["x1"]}).expressions, "x1") == 0
    assert all("x1" in text for text in search(face, constraints={"required": ["x1"]}).expressions)


@row("constraints.limits", "constraints.nesting", "constraints.arguments", faces=("config",), slow=True)
def functions_are_limited(face: str) -> None:
    free = {"y": 9 * np.sin(X[:, 0]) + X[:, 1], "primitives": ["add", "sin"], "max_size": 9}
    assert occurrences(search(face, **free).expressions, "sin(") > 0
    assert occurrences(search(face, **free, constraints={"limits": {"sin": 0}}).expressions, "sin(") == 0
    nested = {"y": np.sin(2 * np.sin(X[:, 0])), "primitives": ["sin", "mul"], "generations": 4, "max_size": 9}
    assert occurrences(search(face, **nested).expressions, "sin(") > 0
    texts = search(face, **nested, constraints={"nesting": {"sin": {"sin": 0}}}).expressions
    assert not re.search(r"sin\([^)]*sin\(", " ".join(texts))
    # An argument of one node holds one feature or number.
    texts = search(face, **free, constraints={"arguments": {"sin": 1}}).expressions
    assert all(re.fullmatch(r"\w+", inner) for inner in re.findall(r"sin\(([^)]*)\)", " ".join(texts)))


@row("constraints.monotonic", "constraints.penalty", faces=("config",))
def the_wrong_direction_costs_the_penalty(face: str) -> None:
    words = {"y": -X[:, 0], "primitives": ["add"], "max_size": 5, "generations": 0}
    direction = {"monotonic": {"x0": "increasing"}}
    worth = {}
    for penalty in (0, 1000):
        found = search(face, **words, constraints={**direction, "penalty": penalty})
        worth[penalty] = [loss for text, loss in found.front if "x0" in text]
    # All pairs fall: without a price the law is exact, and with one a multiple of 0, or gone.
    assert search(face, **words).losses[-1] < 1e-20
    assert worth[0][-1] < 1e-20
    best = search(face, y=X[:, 0] * (4 - X[:, 0]), constraints=direction | {"penalty": 1e6}).fitted.best
    rows = np.column_stack([np.linspace(1.2, 4.8, 40), np.full(40, 3.0)])
    assert (np.diff(best.predict(rows)) >= -1e-9).all()


@row("units", faces=FITTED)
@row("constraints.units", "constraints.target_unit", "constraints.dimensionless_constants", faces=("config",))
def formulas_have_the_unit_of_the_target(face: str) -> None:
    features, target = ("1", "1") if face == "SymbolicClassifier" else ("m", "m^2")
    words: dict[str, Any] = {"primitives": ["add", "mul", "div"], "generations": 3}
    if face == "config":
        units = {"units": {"x0": features, "x1": "m"}, "target_unit": target}
        words |= {"constraints": {**units, "dimensionless_constants": True}, "linear_scaling": False}
    else:
        # With a plain number in place of a length, no sum of both is left.
        words |= {"units": ([features, "m"], target)}
    found = search(face, **words)
    if face == "config":
        for model in found.fitted.front:
            np.testing.assert_allclose(calculated(model.expression, 2 * X), 4 * calculated(model.expression, X))
    assert found.expressions
    odds = {"loss": "binomial", "y": Y.mean() < Y, "constraints": {"units": {"x0": "m", "x1": "m"}, "target_unit": "m"}}
    if face in ("config", "SymbolicClassifier"):
        with pytest.raises((ValueError, AssertionError), match="odds and scores of classes have no unit"):
            search(face, **(odds if face == "config" else {"units": (["m", "m"], "m")}))
    with pytest.raises(Exception, match="furlongs"):
        search(face, **{**words, **({"units": (["furlongs", "m"], target)} if face != "config" else _wrong(words))})


def _wrong(words: dict[str, Any]) -> dict[str, Any]:
    return {"constraints": {**words["constraints"], "target_unit": "furlongs"}}
