"""What is said of a formula is what calculus says of it."""

from __future__ import annotations

import numpy as np
import pytest

from shine.lang.parse import parse
from shine.search.models.measuring.behaviour import Behaviour, compared, dimensions, explained


def behaviour(text: str, **ranges: tuple[float, float]) -> Behaviour:
    """A formula on points spread over ranges."""
    rng = np.random.default_rng(0)
    return Behaviour(parse(text), {name: rng.permutation(np.linspace(*ends, 101)) for name, ends in ranges.items()})


@pytest.mark.parametrize(
    ("text", "end", "limit"),
    [
        ("1 + 2*exp(-x)", "+infinity", "1"), ("1 + 2*exp(-x)", "0 from above", "3"),
        ("exp(x)", "+infinity", "infinity, faster than powers"),
        ("-exp(x)", "+infinity", "-infinity, faster than powers"),
        ("3*x**2 + x", "+infinity", "infinity, like the power 2 of the distance"),
        ("-x", "+infinity", "-infinity, like the power 1 of the distance"),
        ("1/x", "0 from above", "infinity, like the power -1 of the distance"),
        ("1/x", "+infinity", "0, like the power -1 of the distance"), ("5 + 1/sqrt(x)", "+infinity", "5"),
        ("sqrt(x)/(1 + sqrt(x))", "+infinity", "1"), ("log(x)", "+infinity", "infinity, slower than powers"),
        ("log(x)", "0 from above", "-infinity, slower than powers"), ("sin(x)", "+infinity", "no limit is seen"),
        ("sin(x)/x", "0 from above", "1"), ("sqrt(4 - x)", "+infinity", "no value"), ("exp(-x)", "+infinity", "0"),
    ],
)  # fmt: skip
def test_limits(text, end, limit):
    found = behaviour(text, x=(0.5, 4)).limits("x")[end]
    assert found == limit or found.startswith(f"{limit}, faster")


def test_features_that_can_be_negative_have_limits_on_that_side_too():
    found = behaviour("exp(x)", x=(-1, 1)).limits("x")
    assert set(found) == {"+infinity", "-infinity", "0 from above", "0 from below"}
    assert found["-infinity"].startswith("0") and found["0 from below"] == "1"


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("a*exp(-x)", "falls everywhere in the box of the rows (proved)"),
        ("a*x**3", "rises everywhere in the box of the rows (proved)"),
        ("x*x - 4*x + a", "rises at"), ("a*sin(9*x)", "rises at"), ("a/x", "falls everywhere"),
        ("a*(x - x*x/8)", "rises everywhere"),
    ],
)  # fmt: skip
def test_directions(text, direction):
    assert behaviour(text, a=(1, 2), x=(0.5, 3.5)).direction("x").startswith(direction)


@pytest.mark.parametrize(
    ("text", "poles"),
    [
        ("1/(x - 1.25)", ["pole at 1.25"]), ("1/(x*x - 2)", ["pole at 1.41421"]), ("exp(-x)", []), ("1/(x*x + 1)", []),
        ("(x - 2)/(x - 2)", ["undefined at 2, with values around it"]),
        ("x/(x - 1)/(x - 3)", ["pole at 1", "pole at 3"]),
        ("sin(x)/x", ["undefined at 0, with values around it"]),
    ],
)  # fmt: skip
def test_poles(text, poles):
    found = behaviour(text, x=(0.5, 4)).poles("x")
    assert [each for each in found if "-" not in each] == poles


def test_ranges_without_a_value():
    (gap,) = behaviour("sqrt(x - 2)", x=(1, 4)).poles("x")
    low, high = (float(word) for word in gap.removeprefix("no value from ").split(" to "))
    assert low == pytest.approx(-2, abs=0.1) and high == pytest.approx(2, abs=0.1)


def test_sensitivities_are_those_of_powers():
    found = behaviour("a*x**3", a=(1, 2), x=(1, 3)).sensitivity("x")
    assert found["elasticity_at_medians"] == pytest.approx(3)
    low, high = np.quantile(np.linspace(1, 3, 101), [0.05, 0.95])
    assert found["change_from_5_to_95_percent"] == pytest.approx(1.5 * (high**3 - low**3))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("m*v*v/2", "consistent"), ("m*v", "inconsistent"), ("3*m*v", "consistent if constants have units"),
        ("m*v*v + m", "inconsistent"), ("m*exp(v)", "inconsistent"), ("m*v*v*exp(v/v)", "consistent"),
        ("m + z", "not known without the units of z"),
    ],
)  # fmt: skip
def test_dimensions(text, verdict):
    assert dimensions(parse(text), {"m": "kg", "v": "m/s", "target": "J"})["verdict"] == verdict


def test_a_unit_that_cannot_be_read_is_an_error():
    with pytest.raises(ValueError, match="parsec"):
        dimensions(parse("m"), {"m": "parsecs"})


def test_everything_that_is_said_of_a_formula():
    rng = np.random.default_rng(1)
    columns = {"x": rng.uniform(0, 1, 60), "z": rng.uniform(2, 3, 60)}
    columns["x"][3] = np.nan
    told = explained(parse("exp(x)/z"), columns)
    assert told["rows"] == 59 and set(told["features"]) == {"x", "z"}
    assert told["defined_and_plausible"]["between the rows"]
    assert "rows_without_value" in explained(parse("log(x - 0.5)"), columns)
    assert explained(parse("3"), {}) == {"value": "the same everywhere: it uses no feature"}
    with pytest.raises(ValueError, match="fewer than two rows"):
        explained(parse("x"), {"x": np.array([1.0, np.nan])})


def test_two_formulas_are_told_apart_only_by_more_than_chance():
    rng = np.random.default_rng(2)
    target = rng.normal(size=200)
    near, far = target + rng.normal(0, 0.1, 200), target + rng.normal(0, 0.3, 200)
    assert compared(target, {"a": near, "b": far})["verdict"] == "the a formula has the smaller squared errors"
    assert compared(target, {"a": far, "b": near})["verdict"] == "the b formula has the smaller squared errors"
    other = target + rng.normal(0, 0.1, 200)
    assert compared(target, {"a": near, "b": other})["verdict"].startswith("the rows do not tell")
    assert compared(target, {"a": near, "b": near})["verdict"] == "equal on these rows"
    near[0] = np.nan
    found = compared(target, {"a": near, "b": far})
    assert (found["rows"], found["rows_left_out"]) == (199, 1)
    assert found["a"]["root_mean_squared_error"] == pytest.approx(np.sqrt(np.mean((near[1:] - target[1:]) ** 2)))
