"""When a formula counts as the true one: positive and negative examples of the rule in `quality.recovery`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quality.formulas import Formula, parse_formula
from quality.recovery import Verdict, judge
from quality.simplification import is_truth

FEATURES = ("x", "y", "z", "w")


def read(text: str) -> Formula:
    """A formula over the features of this file."""
    return parse_formula(text, FEATURES)


def verdict(candidate: str, truth: str, low: float = 1.0, high: float = 5.0, **options: object) -> Verdict:
    """The verdict, with the same range for each feature."""
    return judge(read(candidate), read(truth), [(low, high)] * len(FEATURES), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("candidate", "truth", "reason"),
    [
        ("y*x", "x*y", "factor"),
        ("2.5*x*y", "x*y", "factor"),
        ("-x*y", "x*y", "factor"),
        ("x*y - 1.7", "x*y", "difference"),
        ("x*y/(x + y)", "1/(1/x + 1/y)", "factor"),
        ("exp(log(x)*0.3333333333)", "x**(1/3)", "factor"),
        ("0.5*(exp(x) - exp(-x))", "sinh(x)", "factor"),
        ("sin(x + 1.570796327)", "cos(x)", "factor"),
        ("log(x) + 2.0*log(y)", "log(x*y**2/4)", "difference"),
        ("x*(y*(z*z))", "x*y*z**2", "factor"),
        ("sqrt(x**2)", "x", "factor"),
        ("protected_div(x, y)", "x/y", "factor"),
    ],
)
def test_the_truth_in_another_form_is_recovered(candidate, truth, reason):
    assert verdict(candidate, truth) == Verdict(True, reason)


@pytest.mark.parametrize(
    ("candidate", "truth"),
    [
        ("sin(0.15915494309*x)*y", "sin(x/(2*pi))*y"),
        ("sin(0.15915*x)*y", "sin(x/(2*pi))*y"),
        ("0.0796*x/y**2", "x/(4*pi*y**2)"),
        ("x*y + 1e-14*sin(x)", "x*y"),
        ("sqrt(0.0 + (1.0000001*x**2 + 0.9999998*y**2))", "sqrt(x**2 + y**2)"),
        ("(0.00000001573 + 1.0000007*(sin(-0.9999525*z)*(1.0000579*y)))", "sin(z)*y"),
        ("x**1.99999*y", "x**2*y"),
        ("0.0796*x/y**2 + 3e-13*z - 0.00001", "x/(4*pi*y**2)"),
    ],
)
def test_constants_that_round_to_the_true_ones_are_right(candidate, truth):
    assert verdict(candidate, truth).recovered


@pytest.mark.parametrize(
    ("candidate", "truth"),
    [
        ("sin(0.99*x)", "sin(x)"),
        ("sin(0.998*x)*y", "sin(x)*y"),
        ("x**1.99*y", "x**2*y"),
        ("0.123*log(x) + z", "0.124*log(x) + z"),
        ("x*y + 0.001*z", "x*y"),
        ("x/(x + 1.002*y)", "x/(x + y)"),
        ("sqrt(x**2 + y**2 + 0.01)", "sqrt(x**2 + y**2)"),
    ],
)
def test_a_wrong_constant_is_no_recovery(candidate, truth):
    assert verdict(candidate, truth) == Verdict(False, "no")


@pytest.mark.slow
@pytest.mark.parametrize("degree", [6, 9, 12])
def test_an_approximation_is_no_recovery_however_accurate(degree):
    nodes = np.polynomial.chebyshev.Chebyshev.interpolate(np.sin, degree, [1, 5])
    coefficients = nodes.convert(kind=np.polynomial.Polynomial).coef.tolist()
    text = " + ".join(f"({c!r})*x**{power}" for power, c in enumerate(coefficients))
    x = np.linspace(1, 5, 200)
    error = np.abs(read(text).predict(np.column_stack([x] * 4)) - np.sin(x)).max()
    assert error < 10.0 ** (-0.5 * degree)
    assert not verdict(text, "sin(x)").recovered


def test_a_series_cut_off_below_the_precision_of_float64_is_no_recovery():
    text = "x - x**3/6 + x**5/120 - x**7/5040 + x**9/362880"
    assert not verdict(text, "sin(x)", 0.01, 0.1).recovered


def test_the_unit_of_the_target_makes_no_difference():
    for unit in ("1e-9", "1e9"):
        assert verdict(f"{unit}*(x*y + 0.000001*z)", "x*y").recovered
        assert not verdict(f"{unit}*(x*y + 0.01*z)", "x*y").recovered
        assert not verdict(f"{unit}*x*y + {unit}*0.01*z", "x*y").recovered


@pytest.mark.parametrize("candidate", ["sqrt(x - 3)", "x + 0.0*log(x - 3)", "1/(x - x)"])
def test_a_formula_that_is_undefined_in_a_part_of_the_range_is_no_recovery(candidate):
    assert not verdict(candidate, "x").recovered


TRUTHS = (
    "x*y",
    "y*exp(-x**2/2)",
    "sqrt((x - y)**2 + (z - w)**2)",
    "x/(4*pi*y*z**2)",
    "x*(1 + y*cos(z))",
    "1/(exp(x*y/z) - 1)",
    "(x*y + z*w)/(y + w)",
)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from(TRUTHS), st.sampled_from([1e-9, 1e-6, 3e-5]), st.integers(0, 1000))
def test_weights_and_offsets_everywhere_do_not_hide_the_truth(truth, size, seed):
    """A formula as engines write it: a fitted constant at each feature, correct to within `size`."""
    rng = np.random.default_rng(seed)

    def weighted(match: re.Match[str]) -> str:
        slope, offset = (float(value) for value in rng.normal((1, 0), (size, size)))
        return f"({slope!r}*{match[0]} + {offset!r})"

    messy = re.sub(r"\b[xyzw]\b", weighted, truth)
    assert verdict(
        f"{float(rng.normal(0, size / 100))!r} + {float(rng.uniform(1, 3))!r}*({messy})", truth, 1, 2
    ).recovered


@pytest.mark.parametrize(
    ("candidate", "truth", "answer"),
    [
        ("1.00004*sin(0.99998*x)*y + 0.000001", "sin(x)*y", True),
        ("x*y + 3.0", "x*y", True),
        ("x*y/(x + y)", "1/(1/x + 1/y)", True),
        ("sin(0.99*x)", "sin(x)", False),
        ("2.0*x*y + 3.0", "x*y", False),
        ("1.5", "x*y", False),
        ("sin(0.15915494309*x)", "sin(x/(2*pi))", False),  # what rounding to decimals spoils
    ],
)
def test_sympy_is_asked_as_srbench_does(candidate, truth, answer):
    pytest.importorskip("sympy")
    assert is_truth(read(candidate), read(truth), [True] * 4) == answer
