"""Formulas found in noisy rows: which are the law, which only up to constants, and which are not."""

from __future__ import annotations

import numpy as np
import pytest
from quality.families import judge_law
from quality.formulas import parse_formula

X = np.linspace(1, 10, 20)[:, None]


def verdict(candidate: str, law: str, noise: float = 0.01, **options) -> str:
    """On a formula of x found in 20 rows of a law with relative noise."""
    truth = parse_formula(law, ["x"])
    return judge_law(parse_formula(candidate, ["x"]), truth, X, noise * np.abs(truth.predict(X)), **options)


@pytest.mark.parametrize(
    ("candidate", "law"),
    [
        ("x", "x"),
        ("1.01*x", "x"),
        ("2*x + 0.3*x - 0.29*x", "2*x"),
        ("1.003*sqrt(cube(x))", "1.0*x**1.5"),
        ("sqrt(x)", "1.002*x**0.499"),
        ("9.05*(1 - exp(-x/1.99))", "9.0*(1 - exp(-x/2.0))"),
        ("12.1*x/(3.24 + 1.003*x)", "12.0*x/(3.2 + x)"),
        ("12.02/(1 + 3.2/x)", "12.0*x/(3.2 + x)"),
        ("exp(0.995 - 2.001*x)", "2.7*exp(-x/0.5)"),
        ("log(x*2.01)", "0.7 + log(x)"),
        ("1.101/x**2 - 0.2752", "1.1*(1/x**2 - 0.25)"),
    ],
)
def test_the_same_form_with_constants_within_the_noise_is_identical(candidate, law):
    assert verdict(candidate, law, 0.01) == "identical"


@pytest.mark.parametrize(
    ("candidate", "law", "noise"),
    [
        ("1.01*x", "x", 0.001),
        ("1.02*x", "x", 0.01),
        ("1.0*x**1.52", "1.0*x**1.5", 0.01),
        ("7*exp(-1.5*x)", "2.7*exp(-x/0.5)", 0.01),
    ],
)
def test_the_same_form_with_constants_that_the_rows_exclude_is_so_up_to_constants(candidate, law, noise):
    assert verdict(candidate, law, noise) == "constants"


@pytest.mark.parametrize(
    ("candidate", "law"),
    [
        ("9.0 - 9.01*exp(-x/2)", "9.0*(1 - exp(-x/2.0))"),  # the offset is free
        ("12.02 - 38.4/(x + 3.2)", "12.0*x/(3.2 + x)"),  # so is it here
        ("sin(2.00001*x)", "sin(2*x)"),  # the law's 2 is not to be measured
    ],
)
def test_a_form_with_a_freedom_that_the_law_lacks_is_so_up_to_constants(candidate, law):
    assert verdict(candidate, law, 0.05) == "constants"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "law"),
    [
        ("x + 1.0", "x"),
        ("x + 0.0001", "x"),
        ("2*x + 0.001*x**2", "2*x"),
        ("2*x + 1e-9*x**2", "2*x"),
        ("x**2 + 0.001", "x**2"),
        ("x**1.001", "x"),
        ("x + 0.5 - 0.5003", "x"),
        ("3*x/(1 + 0.0001*x)", "3.0*x"),
        ("x", "1.1*x**0.9"),
        ("x**0", "x**0.01"),
        ("30*x - 20", "x**2"),
        ("log(x - 100)", "x"),
    ],
)
def test_a_term_of_its_own_or_another_form_is_no_law_whatever_the_noise(candidate, law):
    assert verdict(candidate, law, 0.5) in ("no", "offset")
    assert verdict(candidate, law, 1e-7) == "no"


@pytest.mark.parametrize(
    ("candidate", "law", "expected"),
    [
        ("1.002*x + 0.003", "x", "offset"),
        ("1.002*x + 0.3", "x", "no"),
        ("1.2*x + 0.003", "x", "no"),
        ("0.98/x + 0.0002", "1.0/x", "offset"),
        ("x + 0.003 + 0.0001*x**2", "x", "no"),
        ("1.002*x + 0.003", "1.0*x + 0.01", "identical"),
    ],
)
def test_an_offset_that_the_noise_hides_is_counted_apart(candidate, law, expected):
    assert verdict(candidate, law, 0.03) == expected
