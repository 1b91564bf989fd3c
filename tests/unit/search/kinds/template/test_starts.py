import math

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine
from shine.data.datasets.dataset import Dataset
from shine.search.kinds.template.starts import with_starts
from shine.search.templates.composition import resolved

TIMES = np.linspace(1, 9, 60)


def starts_of(text: str, factor: float, size: float = 1.0, **options) -> dict[str, float]:
    columns = np.column_stack([TIMES * factor, TIMES])
    data = Dataset.from_arrays(columns, size * TIMES, features=("t", "dose"))
    template = with_starts(resolved(shine.template(text, **options), ("t", "dose")), data)
    return {each.name: each.first for each in template.parameters}


@pytest.mark.parametrize(
    ("text", "name", "power"),
    [
        ("f(dose)*exp(-k*t)", "k", -1),
        ("f(dose)*sin(w*t + p)", "w", -1),
        ("f(dose)*exp(b/t)", "b", 1),
        ("f(dose)*log(t + c)", "c", 1),
        ("f(dose)*exp(-(t/s)**2)", "s", 1),
        ("f(dose)*exp(-k*t*t)", "k", -2),
    ],
)
def test_a_parameter_starts_at_the_size_that_its_column_asks_for(text, name, power):
    found = [starts_of(text, 10.0**decades)[name] for decades in (3, 6)]
    assert found[1] / found[0] == pytest.approx(1000.0**power)


def test_starts_near_one_and_those_of_users_stay():
    assert starts_of("f(dose)*exp(-k*t)", 1.0) == {"k": 1.0}
    assert starts_of("f(dose)*exp(-k*t)", 1e6, parameters={"k": {"start": 0.3}}) == {"k": 0.3}
    assert starts_of("k*f(dose)", 1e6) == {"k": 1.0}
    assert all(map(math.isfinite, starts_of("f(dose)*exp(-k*t/a)", 1e6).values()))
    assert starts_of("sqrt(sqrt(sqrt(a/(b/(c/t)))))", 1e300, size=1e100) == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_a_formula_without_unknown_functions_starts_at_the_size_of_the_target():
    sizes = starts_of("a*exp(-k*dose) + b/(dose + c) + max(d, -sqrt(e))", 1.0, size=1e6)
    assert sizes.pop("e") == pytest.approx(sizes["a"] ** 2)
    assert sizes == {"a": sizes["a"], "k": 1.0, "b": sizes["a"], "c": 1.0, "d": sizes["a"]}
    assert 1e6 < sizes["a"] < 9e6


@pytest.mark.slow
@pytest.mark.parametrize("factor", mostly_slow([1 / 60, 1440.0], fast=[1440.0]))
def test_a_law_is_found_in_any_unit_of_a_column(factor):
    rng = np.random.default_rng(0)
    dose, t = rng.uniform(1, 5, 80), rng.uniform(0, 4, 80)
    y = dose * dose * np.exp(-0.7 * t)
    options = {"template": "f(dose)*exp(-k*t)", "features": ["dose", "t"], "seed": 0, "generations": 20}
    assert shine.evolve(np.column_stack([dose, t * factor]), y, **options).best.r2 > 1 - 1e-6
