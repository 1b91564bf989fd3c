"""Fronts and results: their order, their tables, and the formula they recommend."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest

import shine
from shine.search.models.front import Front, pareto_front
from shine.search.models.model import Model
from shine.search.models.result import Result

FORMULAS = {1: "a", 2: "-a", 3: "a + b", 4: "-a + b", 5: "a + b*a", 7: "a + b*a + b", 9: "a + b*a + b*b"}
"""A formula of each size."""


def model(size: int, loss: float) -> Model:
    return Model(shine.parse(FORMULAS[size], ("a", "b")), loss, 1 - loss)


def front(*losses: tuple[int, float]) -> list[Model]:
    return [model(size, loss) for size, loss in losses]


def result(models: list[Model], best: int = 0) -> Result:
    return Result(tuple(models), best, 3, 100, 0.5, 7, "generations")


def test_a_front_is_ordered_by_weighted_complexity():
    sine, sums = (
        Model(shine.parse(text, ("a", "b")), loss, 0.0, {"sin": 9})
        for text, loss in (("sin(a)", 1.0), ("a + b + a", 2.0))
    )
    assert [each.expression for each in pareto_front([sine, sums], 0.0)] == ["a + b + a", "sin(a)"]


def test_the_best_constant_begins_a_front_though_a_feature_is_as_simple_and_better():
    constants = [Model(shine.parse(text, ("a", "b")), loss, 0.0) for text, loss in (("2.0", 4.0), ("3.0", 3.0))]
    found = pareto_front([*front((3, 1.0), (1, 2.0)), *constants], 0.0, criterion=lambda each: -each.loss)
    assert [each.expression for each in found] == ["3", "a", "a + b"]


def test_nothing_on_a_front_is_worse_than_the_constant_however_little_it_counts():
    constant = Model(shine.parse("2.0", ("a", "b")), 1.0, 0.0, {"constant": 5})
    assert [each.expression for each in pareto_front([*front((1, 2.0), (7, 0.5)), constant], 0.0)] == [
        "2", "a + b*a + b",
    ]  # fmt: skip


@pytest.mark.parametrize(("noise", "heading"), [("absolute", "loss"), ("relative", "weighted loss")])
def test_a_loss_of_weighted_rows_is_called_so(noise, heading):
    shown = Front(tuple(replace(each, noise=noise) for each in front((1, 1.0), (3, 0.5))), 1, "why")
    head, *lines = repr(shown).splitlines()
    assert (f" {heading} " in head, "weighted" in head) == (True, noise == "relative")
    assert [line for line in lines if line.startswith("noise:")] == [
        "noise: relative; loss and r2 count errors relative to the target"
    ] * (noise == "relative")
    assert str(shown[1]).endswith(f"{heading} 0.5, R2 0.5, complexity 3")
    assert f"{heading}</th>" in shown._repr_html_()
    assert rf"\text{{{heading}}}" in shown._repr_latex_()


def test_a_result_is_a_table_of_plain_values():
    assert list(result(front((1, 1.0), (3, 0.5)), best=1).rows()) == [
        {"complexity": 1, "loss": 1.0, "r2": 0.0, "expression": "a", "best": False},
        {"complexity": 3, "loss": 0.5, "r2": 0.5, "expression": "a + b", "best": True},
    ]


@pytest.mark.parametrize(
    ("losses", "enough", "kept"),
    [
        ([(1, 3.0), (3, 2.0), (5, 1.0)], 0.0, [1, 3, 5]),
        # Larger formulas that are worse or equal are left out.
        ([(1, 3.0), (3, 3.0), (4, 4.0), (5, 1.0)], 0.0, [1, 5]),
        # The better of two formulas of one size stays, in any order.
        ([(3, 2.0), (1, 3.0), (3, 1.0)], 0.0, [1, 3]),
        ([(3, 1.0), (3, 1.0)], 0.0, [3]),
        # The first that is good enough is the last.
        ([(1, 3.0), (3, 1e-13), (5, 1e-20)], 1e-12, [1, 3]),
        ([(1, 3.0), (3, 1e-12), (5, 1e-20)], 1e-12, [1, 3]),
        ([(1, 3.0), (3, 0.0), (5, 0.0)], 0.0, [1, 3]),
        ([(1, 0.0), (3, 0.0)], 0.0, [1]),
        ([], 0.0, []),
    ],
)
def test_a_front_keeps_formulas_that_are_better_than_all_simpler_ones(losses, enough, kept):
    found = pareto_front(front(*losses), enough)
    assert [each.complexity for each in found] == kept
    assert all(earlier.loss > later.loss for earlier, later in pairwise(found))


def test_a_front_is_a_sequence_with_a_choice():
    found = result(front((1, 1.0), (3, 0.5), (5, 0.25)), best=1).front
    assert isinstance(found, Front)
    assert found[1] is found.best is list(found)[1]
    assert (len(found), found.best_index, found[1:]) == (3, 1, tuple(found)[1:])
    assert found.index(found[2]) == 2


@pytest.mark.parametrize(
    ("losses", "scores"),
    [
        ([(1, 1.0)], [0.0]),
        ([(1, math.e**2), (3, 1.0), (4, math.e**-3)], [0.0, 1.0, 3.0]),
        ([(1, 1.0), (3, 0.0)], [0.0, math.inf]),
        ([(1, 0.0)], [0.0]),
    ],
)
def test_scores_are_falls_of_the_logarithm_a_unit_of_complexity(losses, scores):
    assert list(Front(tuple(front(*losses)), 0).scores) == pytest.approx(scores)


def test_a_front_is_a_table():
    found = result(front((1, 1.0), (3, 0.5)), best=1).front
    assert [row["score"] for row in found.rows()] == list(found.scores)
    frame = found.to_frame()
    assert list(frame.columns) == ["complexity", "loss", "score", "expression", "equation"]
    assert frame["equation"].tolist() == ["a", "a + b"]
    header, *lines = repr(found).splitlines()
    assert header.split() == ["complexity", "loss", "score", "equation"]
    assert [line.split()[0] for line in lines] == ["0", ">>>"]
    assert lines[1].split()[1:4] == ["1", "3", "0.5"]


def test_a_table_says_why_a_formula_is_recommended():
    found = Front(tuple(front((1, 1.0), (3, 0.5))), 1, "it is short")
    assert repr(found).splitlines()[-1] == ">>> it is short"
    assert Result(found, 1, 3, 100, 0.5, 7, "generations").front.reason == "it is short"


LONG = Model(shine.parse("*".join(["a", *["(b + 0.123456)"] * 30]), ("a", "b")), 0.5, 0.5)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(
        "shine.search.models.front_table.sys.stdout", type("Screen", (), {"isatty": lambda self: True})()
    )
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.parametrize("width", [20, 40, 79, 200])
def test_tables_and_formulas_are_wrapped_on_a_terminal(monkeypatch, width):
    found = result([*front((1, 1.0)), LONG], best=1)
    shown = repr(found), repr(found.front), str(found.best)
    on_a_terminal(monkeypatch, width)
    for text, whole in zip((repr(found), repr(found.front), str(found.best)), shown, strict=True):
        assert max(map(len, text.splitlines())) <= width
        if width > 80:
            assert "".join(text.split()) == "".join(whole.split())


def test_a_result_says_how_it_ended():
    found = result(front((1, 1.0), (3, 0.5)), best=1)
    assert repr(found).splitlines()[-1] == (
        "100 evaluations in 3 generations and 0.5 s; stopped by the limit of generations"
    )
    assert repr(found).startswith(repr(found.front))
