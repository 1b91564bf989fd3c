import numpy as np
import pandas as pd
import pytest
from scipy.optimize import curve_fit

import shine
from shine.base.errors import DataError, UnsupportedSyntaxError

RNG = np.random.default_rng(0)
T = RNG.uniform(10, 60, 80)
TABLE = pd.DataFrame({"t [K]": T, "y": 8 * np.exp(-350 / (T + 45)), "day": np.where(T > 30, "a", "b")})
TABLE["y"] += RNG.normal(0, 0.002, len(T))
LAW = "a*exp(b/(t [K] - c))"


@pytest.mark.slow
def test_constants_and_their_errors_are_those_of_least_squares():
    found = shine.fit(LAW, TABLE, "y").best
    best, covariance = curve_fit(lambda t, a, b, c: a * np.exp(b / (t - c)), T, TABLE.y, [8, -350, -45])
    assert list(found.constants.values()) == pytest.approx(best, rel=1e-4)
    errors = found.standard_errors(covariance="model").values()
    assert list(errors) == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "constants"),
    {
        "a*exp(-((x - m)/s)**2) + d": {"a": 3, "m": 1e6, "s": 3e3, "d": 1},
        "a*exp(-b*x) + c*exp(-d*x)": {"a": 3, "b": 1e-7, "c": 7, "d": 2e-6},
        "a*sin(w*x) + c": {"a": 3, "w": 2e-5, "c": 10},
    }.items(),
)
def test_the_start_may_be_far_away(text, constants):
    x = np.random.default_rng(1).uniform(0.98e6, 1.02e6, 60) * (1 if "m" in constants else 2)
    x = x if "m" in constants else x - x.min()
    y = np.array(shine.jit(text)(**dict.fromkeys(constants, np.ones(60)) | {"x": x} | constants))
    assert shine.fit(text, x[:, None], y, features=["x"]).best.r2 > 1 - 1e-9


@pytest.mark.slow
def test_bounds_groups_and_fixed_numbers():
    bounded = shine.fit(LAW, TABLE, "y", parameters={"c": (-60, -50)}).best
    assert bounded.constants["c"] == -50
    assert set(bounded.conf_int()) == {"a", "b"}
    by_day = shine.fit("a*exp(b[day]/(t [K] + 45))", TABLE, "y").best
    assert by_day.groups == ("a", "b")
    assert by_day.constants["b"] == pytest.approx([-350, -350], rel=0.01)
    assert shine.fit("8*exp(-350/(t [K] + 45))", TABLE, "y").best.loss == pytest.approx(0.002**2, rel=0.3)


@pytest.mark.parametrize("text", ["a*x**n", "a*exp(-b*x) + c", "sqrt(a + b*x)"])
@pytest.mark.parametrize("unit", [1e-50, 1e-10, 1e10, 1e50])
def test_a_formula_fits_in_any_unit_of_the_target(text, unit):
    x = np.linspace(1, 5, 30)
    y = 3 * np.exp(-0.5 * x) + np.random.default_rng(0).normal(0, 0.02, 30)
    words = {"features": ["x"], "noise": "absolute"}
    one, other = (shine.fit(text, x[:, None], y * each, **words).best for each in (1.0, unit))
    assert other.r2 == pytest.approx(one.r2, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "constants", "t"),
    [("a*exp(-b/t)", [1e9, 7200], (300, 500)), ("a*exp(b/(t + c))", [5.6e-3, 6181, 345], (50, 125))],
)
def test_a_fit_goes_to_the_end_of_a_curved_valley(text, constants, t):
    t, words = np.linspace(*t, 20), dict(zip("abc", constants, strict=False))
    y = shine.jit(text)(t=t, **words) + np.random.default_rng(0).normal(0, 5, 20)
    best, _ = curve_fit(lambda t, *each: shine.jit(text)(t=t, **dict(zip("abc", each, strict=False))), t, y, constants)
    found = shine.fit(text, t[:, None], y, features=["t"], noise="absolute").best
    assert list(found.constants.values()) == pytest.approx(best, rel=1e-4)


def test_a_value_at_its_bound_has_no_interval_in_one_group():
    hot, cold = np.where(TABLE.day == "a", 1, 0), TABLE["t [K]"]
    y = 8 * np.exp((-350 - 100 * hot) / (cold + 45)) + RNG.normal(0, 0.002, len(T))
    found = shine.fit("a*exp(b[day]/(t [K] + 45))", TABLE, y, parameters={"b": (-400, None)}, noise="absolute").best
    assert found.constants["b"][0] == -400
    ends = found.conf_int()
    assert list(ends) == ["a", "b_b"]
    assert ends["b_b"][0] < found.constants["b"][1] < ends["b_b"][1]


@pytest.mark.parametrize(
    ("text", "names"),
    {
        "b_a*exp(b[day]/(t [K] + 45))": ["b_a", "b_a_", "b_b_"],
        "a*exp(b[day]/(t [K] + 45)) + c*b_b": ["a", "b_a_", "b_b_", "c"],
        "b_a[day]*exp(b[day]/(t [K] + 45))": ["b_a_a", "b_a_b", "b_a_", "b_b_"],
    }.items(),
)
def test_values_by_group_have_names_of_their_own(text, names):
    found = shine.fit(text, TABLE.assign(b_b=RNG.normal(size=len(T))), "y", noise="absolute").best
    ends = found.conf_int()
    assert sorted(ends) == sorted(names)
    first = next(name for name in names if name != "a" and name.endswith(("a_", "a_a")))
    assert ends[first][0] < (found.constants["b_a"] if first == "b_a_a" else found.constants["b"])[0] < ends[first][1]


def test_a_column_named_as_a_number_is_the_column():
    x = np.linspace(1, 5, 20)
    table = pd.DataFrame({"pi": x, "x": x**2})
    assert shine.fit("a*pi + b*x", table, 2 * x + 3 * x**2).best.constants == pytest.approx({"a": 2, "b": 3})
    assert shine.fit("a*pi*x", table[["x"]], np.pi * x**2).best.constants == pytest.approx({"a": 1})


@pytest.mark.slow
def test_the_formula_has_its_place_beside_a_front():
    table, y = TABLE[["t [K]"]], TABLE.y
    front = shine.evolve(table, y, generations=1, seed=0, noise="absolute", max_size=3)
    assert "nats less than the chosen" in shine.fit(LAW, table, y, beside=front).reason
    assert "nats more than the chosen" in shine.fit("a + 0*t [K]", table, y, beside=front).reason
    with pytest.raises(DataError, match="beside: the front has no column u"):
        shine.fit("a*u", table.assign(u=y), y, beside=front)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("a*sqr(t [K])", UnsupportedSyntaxError, "did you mean 'square'"),
        ("a*gamma(t [K])", UnsupportedSyntaxError, "Shine has no gamma"),
        ("a*b", DataError, r"names no column of the data; there are t \[K\], y, day"),
        (shine.template("f(t)"), ValueError, "the unknown function f; search with shine.evolve"),
    ],
)
def test_what_is_no_complete_formula_of_the_table_is_told(text, error, message):
    with pytest.raises(error, match=message):
        shine.fit(text, TABLE, "y")


def test_a_whole_power_is_no_constant_beside_a_front():
    t = np.linspace(1, 5, 30)
    y = 33 * t**2 + np.random.default_rng(0).normal(0, 0.5, 30)
    words = {"features": ["t"], "primitives": ["mul", "square"], "generations": 2, "seconds": None, "seeding": 0.0}
    front = shine.evolve(t[:, None], y, guesses=["33*square(t)"], **words)
    places = [shine.fit(f"a*{power}", t[:, None], y, features=["t"], beside=front) for power in ("t**2", "t*t")]
    first, second = (place.front.reason.rpartition("; ")[2] for place in places)
    assert first == second
    assert float(first.split()[2]) < 1.0
