"""Rows of templates, in Python and in a configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
from promises.faces import X, occurrences, search
from promises.table import row

FACES = ("template", "config")
GROUPED = np.column_stack([X, np.arange(40) % 4])


def law(face: str, formula: str, y: Any, rows: Any = X, words: dict[str, Any] | None = None, **options: Any) -> Any:
    """What a search with a template finds; a template in Python is given to `shine.evolve`."""
    given = {"primitives": ["add", "mul", "sin"], "generations": 3, **(words or {})}
    return search("evolve" if face == "template" else face, rows, y, template={"formula": formula, **options}, **given)


@row("template.formula", "template.unknown", "template.unknown.arguments", faces=FACES)
def an_unknown_function_is_of_its_arguments(face: str) -> None:
    for unknown, name in ((["angle"], "angle"), ({"arguments": ["turn"]}, "turn"), (None, "x0")):
        options = {} if unknown is None else {"unknown": {"f": unknown}}
        found = law(face, "f(x0)*x1", np.sin(X[:, 0]) * X[:, 1], **options)
        assert found.losses[-1] < 1e-20
        assert found.fitted.best.functions["f"].expression == f"sin({name})"


@row(
    *(f"template.unknown.{key}" for key in ("primitives", "max_size", "max_depth", "constraints")),
    faces=FACES,
    slow=True,
)
def an_unknown_function_has_limits_of_its_own(face: str) -> None:
    y = np.sin(X[:, 0]) * X[:, 0] + X[:, 1]

    def functions(**limits: Any) -> list[str]:
        options = {"unknown": {"f": {"arguments": ["x0", "x1"], **limits}}}
        front = law(face, "f(x0, x1)", y, words={"max_size": 9}, **options).fitted.front
        return [model.functions["f"].expression for model in front]

    free = functions()
    assert occurrences(free, "sin(") and occurrences(free, "x1")
    assert occurrences(functions(primitives=["add", "mul"]), "sin(") == 0
    for limit in ({"max_size": 1}, {"max_depth": 1}):
        assert all(text.count("x0") + text.count("x1") <= 1 and "sin" not in text for text in functions(**limit))
    assert occurrences(functions(constraints={"forbidden": ["x1"]}), "x1") == 0


@row(
    "template.parameters",
    *(f"template.parameters.{key}" for key in ("value", "bounds", "integer", "start")),
    faces=FACES,
)
def parameters_are_fitted_within_what_is_known(face: str) -> None:
    y = X[:, 0] + 2.6 * X[:, 1]
    for known, value in (
        (None, 2.6),
        (2.0, 2.0),
        ({"value": 2.0}, 2.0),
        ([0, 1], 1.0),
        ({"bounds": [0, 1]}, 1.0),
        ([3, None], 3.0),
        ({"integer": True}, 3.0),
        ({"start": 2.0}, 2.6),
    ):
        options = {} if known is None else {"parameters": {"k": known}}
        best = law(face, "f(x0) + k*x1", y, words={"primitives": ["add"], "max_size": 1, "generations": 0}, **options)
        np.testing.assert_allclose(best.fitted.front[-1].constants["k"], value, atol=1e-6, err_msg=str(known))
    turning = X[:, 0] + np.sin(9 * X[:, 1])
    losses = {}
    for start in (9.1, 40.0):
        options = {"parameters": {"w": {"start": start}}}
        losses[start] = law(
            face, "f(x0) + sin(w*x1)", turning, words={"max_size": 1, "generations": 0}, **options
        ).losses[-1]
    assert losses[9.1] < 1e-15 < losses[40.0]


@row("template.groups", "template.shrinkage", faces=FACES)
def each_group_has_its_value_and_shrinkage_draws_them_together(face: str) -> None:
    own = np.array([1.0, 2.0, 3.0, 6.0])[np.arange(40) % 4]
    y = X[:, 0] + own + np.random.default_rng(0).normal(0, 3, 40)
    spreads = []
    for options in ({}, {"groups": "x2"}, {"shrinkage": True}):
        words = {"primitives": ["add"], "max_size": 1, "generations": 0}
        values = law(face, "f(x0) + k[x2]", y, GROUPED, words, **options).fitted.front[-1].constants["k"]
        spreads.append(np.ptp(values))
        assert len(values) == 4
    assert spreads[0] == spreads[1] > spreads[2]


@row("template.functions", faces=FACES, slow=True)
def known_functions_are_called(face: str) -> None:
    found = law(face, "f(bend(x0))", np.sin(X[:, 0] ** 2 + 1), functions=["def bend(t): return t*t + 1"])
    assert found.losses[-1] < 1e-20
