"""The table of searches: all are in it, and each one finds a law of its kind without the others."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.interpret import evaluate_tape
from shine.lang.vocabulary import primitive_table
from shine.search.problem.preparation import linearizer_of
from shine.search.seeding import SeedingSettings, SeedingTask, find_guesses, search_table, searches
from shine.search.seeding.screen.skeletons import Rows
from shine.search.seeding.search_table import SEARCHES

LAWS = {
    "quadratic_forms": lambda x: 4 / (2 + (x[0] - 1.5) ** 2 + 0.7 * (x[1] - 2) ** 2 + x[1] * x[2] - x[2]),
    "affine": lambda x: 3 - 7 * np.sin(x[0] * x[1]),
    "products": lambda x: x[2] * np.sin(x[0]) * (x[1] + np.log(x[0])) ** 2,
    "sums_of_terms": lambda x: (
        np.sin(x[0]) + 0.7 * np.sqrt(x[0]) - 1.3 * np.log(x[0]) + 0.8 * np.cbrt(x[1]) - 0.4 * x[0] * x[2] ** 2
    ),
    "sums_of_two": lambda x: x[0] * x[1] + 0.7 * np.sin(x[2]),
    "factor_times_affine": lambda x: (x[0] + x[1]) * np.sqrt(1.3 + 0.4 * x[1] * x[2]),
    "factor_times_sum": lambda x: x[0] / x[1] * (x[2] ** 2 + 1.3 * np.cos(x[1]) + 0.2),
    "rational_forms": lambda x: (x[0] * x[1] - x[2]) * (x[1] + x[2]) / (x[0] + x[2]),
    "sums_with_curves": lambda x: np.exp(-0.73 * x[0]) + 2.1 / (x[1] + 0.83) + 0.4 * x[2] ** 2,
    "functions_with_constants": lambda x: 2 - 3 * np.exp(-0.37 * x[0] / x[1]),
    "products_with_constants": lambda x: x[1] ** 2 * np.exp(-0.37 * x[0]) * (x[2] + 0.83),
}
"""A law that each search finds."""


def test_every_search_of_the_files_is_in_the_table():
    files = Path(searches.__file__).parent.glob("*.py")
    found = [name for path in files for name in re.findall(r"^def ([a-z]\w*)", path.read_text("utf-8"), re.MULTILINE)]
    assert {search.name for search in SEARCHES} == set(found)
    assert all(search.find.func.__module__.startswith(f"{searches.__name__}.") for search in SEARCHES)


def test_the_docs_list_the_searches_in_their_order():
    text = (Path(__file__).parents[4] / "docs" / "seeding.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [search.name for search in SEARCHES]


def guesses_by(monkeypatch, search, law, features=3):
    """What one search finds alone."""
    monkeypatch.setattr(search_table, "SEARCHES", (search,))
    x = np.random.default_rng(1).uniform(1, 3, (features, 600))
    table, names = primitive_table(["add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos"])
    primitives = PrimitiveSet(select(table, names), tuple(f"x{i}" for i in range(features)))

    def predict(population):
        tapes = [population.tape(i) for i in range(len(population))]
        return np.array([evaluate_tape(t.codes, t.values, primitives, list(x)) for t in tapes])

    settings = SeedingSettings(members=4000, rows=120, coordinates=0)
    fits = partial(linearizer_of, primitives.features, 1)
    rows, rng = Rows(x, law(x), np.ones(600)), np.random.default_rng(0)
    return find_guesses(SeedingTask(rows, primitives, predict, fits, settings=settings), rng)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.name)
def test_each_search_finds_a_law_of_its_kind(monkeypatch, search):
    guesses = guesses_by(monkeypatch, search, LAWS[search.name])
    assert guesses.exact
    assert guesses.failures == ()


@pytest.mark.slow
@pytest.mark.parametrize(("exponent", "bound"), [(2, False), (4, True)])
def test_functions_of_hill_beside_another_term_are_sums_with_curves(monkeypatch, exponent, bound):
    """Molecules that bind several at once: what they leave free, and what they bind."""
    (search,) = (each for each in SEARCHES if each.name == "sums_with_curves")

    def law(x):
        power = x[0] ** exponent
        return 3.1 * (power if bound else 1) / (2.7 + power) - 0.6 * x[1]

    assert guesses_by(monkeypatch, search, law, features=2).exact
