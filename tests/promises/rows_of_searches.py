"""Rows of callbacks, templates, components and the evolution."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from promises.faces import STATIC, Kept, Told, X, Y, calculated, same, search
from promises.table import FITTED, PYTHON, REGRESSORS, row

import shine


@row("report", faces=PYTHON)
def a_callback_is_called_in_every_generation_and_may_end_it(face: str) -> None:
    seen: list[int] = []
    search(face, report=lambda progress: seen.append(progress.generation))
    assert seen[:3] == [0, 1, 2]
    for answer in (True, np.True_):
        assert search(face, report=lambda progress, answer=answer: answer).stopped_by == "callback"


@row("report", faces=PYTHON)
def a_callback_with_begin_and_end_is_told_both(face: str) -> None:
    told: list[str] = []
    search(face, report=Told(told))
    assert (told[0], told[-1], told.count("begin")) == ("begin", "end", told.count("end"))


@row("report", faces=PYTHON)
def a_callback_that_is_false_is_called(face: str) -> None:
    class Empty(Told):
        def __len__(self) -> int:
            return 0

    told: list[str] = []
    search(face, report=Empty(told))
    assert told


@row("report", faces=FITTED)
def several_callbacks_are_all_called(face: str) -> None:
    seen: list[str] = []
    search(face, report=[lambda _: seen.append("a"), lambda _: seen.append("b")])
    assert set(seen) == {"a", "b"}


@row("settings", faces=FITTED)
def further_settings_reach_the_search(face: str) -> None:
    assert search(face, settings={"islands": 2}).evaluations > search(face).evaluations
    with pytest.raises(ValueError, match="islands"):
        search(face, settings={"island": 2})


@row("executor", faces=PYTHON, slow=True)
def an_executor_changes_nothing(face: str) -> None:
    plain = search(face, islands=2).front
    with ThreadPoolExecutor(2) as pool:
        assert search(face, islands=2, executor=pool).front == plain
    assert search(face, islands=2, executor=2).front == plain


@row("workers", faces=("evolve", "config"), slow=True)
def workers_change_nothing(face: str) -> None:
    assert same(face, {"islands": 2}, {"islands": 2, "workers": 2})


@row("template", faces=REGRESSORS)
def a_template_has_its_known_part_in_every_form(face: str) -> None:
    @shine.template
    def law(x0: float, x1: float) -> float:
        return f(x0) * x1  # type: ignore[name-defined] # noqa: F821

    forms: list[Any] = ["f(x0)*x1", {"formula": "f(x0)*x1", "unknown": {"f": ["x0"]}}]
    forms += [] if face == "config" else [shine.template("f(x0)*x1"), law]
    for form in forms:
        found = search(face, y=np.sin(X[:, 0]) * X[:, 1], template=form, generations=3)
        assert found.losses[-1] < 1e-20, form
        np.testing.assert_allclose(calculated(found.expressions[-1], X * [1, 0]), 0)


@row("model_selection", faces=FITTED)
def the_selection_chooses_on_the_front(face: str) -> None:
    def first(front: Any) -> int:
        return 0

    def last(front: Any) -> int:
        return len(front) - 1

    for selection, place in ((first, 0), (last, -1), ("accuracy", -1)):
        model = search(face, model_selection=selection, raw_features=False).fitted if "Tr" in face else None
        model = model or search(face, model_selection=selection).fitted
        front = model.front_[0] if "Tr" in face else model.front_
        # The estimator of features never takes a constant.
        if selection is not first or "Tr" not in face:
            best = model.best_[0] if "Tr" in face else model.best_
            assert best.expression == front[place].expression
    for name in ("best", "score"):
        assert search(face, model_selection=name).expressions


@row("warm_start", faces=FITTED)
def a_warm_start_keeps_counting_and_a_cold_one_begins_anew(face: str) -> None:
    for warm in (True, False):
        model = search(face, warm_start=warm).fitted
        before = model.generations_
        y = np.median(Y) < Y if face == "SymbolicClassifier" else Y
        assert (model.fit(X, y).generations_ > before) == warm


@row("verbose", faces=FITTED)
def verbose_searches_log_their_generations(face: str) -> None:
    lines = {}
    for verbose in (0, 1, 2):
        kept, logger = Kept(), logging.getLogger("shine")
        logger.addHandler(kept)
        try:
            search(face, verbose=verbose)
        finally:
            logger.removeHandler(kept)
        lines[verbose] = len(kept.lines)
    assert lines[0] == 0 < lines[1] <= lines[2]
    assert lines[2] >= 3


@row("n_components", "raw_features", faces=("SymbolicTransformer",))
def components_follow_or_replace_the_raw_features(face: str) -> None:
    for count in (1, 2):
        alone = search(face, n_components=count, raw_features=False).fitted
        assert 1 <= alone.n_components_ <= count
        assert alone.transform(X).shape == (40, alone.n_components_)
    both = search(face, n_components=1, raw_features=True).fitted
    np.testing.assert_array_equal(both.transform(X)[:, :2], X)
    assert both.transform(X).shape == (40, 2 + both.n_components_)


@row("max_correlation", faces=("SymbolicTransformer",))
def components_do_not_correlate_by_more(face: str) -> None:
    columns = search(face, n_components=4, raw_features=False, max_correlation=0.5).fitted.transform(X)
    correlations = abs(np.corrcoef(columns, rowvar=False).reshape(columns.shape[1], -1))
    assert (correlations[~np.eye(len(correlations), dtype=bool)] <= 0.5 + 1e-9).all()


OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "rows": (10, {}),
    "initial_size": (3, {}),
    "tournament": (15, {}),
    "constant_steps": (0, {}),
    "fitting_rows": (5, {}),
    "islands": (3, {}),
    "migration_interval": (1, {"islands": 3}),
    "island_settings": ([{"tournament": 1}], {}),
    "seeding": (0.5, {"seconds": 20}),
    "complexity": ({"mul": 10}, {}),
    "crossover": (1.0, {}),
    "subtree_mutation": (0.0, {}),
    "hoist_mutation": (1.0, {}),
    "point_mutation": (1.0, {}),
    "constant_mutation": (1.0, {}),
    "coefficient_mutation": (1.0, {}),
    "parsimony": (1000.0, {}),
    "constants": ([50.0, 60.0], {"constant_steps": 0}),
    "constant_share": (0.9, {}),
}
"""Another value of each setting of the evolution, and what it needs."""


def _changes(name: str) -> Callable[[str], None]:
    value, beside = OTHERS[name]

    def effect(face: str) -> None:
        words = {"generations": 5, "max_size": 11, "stop_loss": 0.0, "y": Y + np.exp(X[:, 1] / 4), **beside}
        one, other = search(face, **words), search(face, **words, **{name: value})
        assert (one.front, one.evaluations) != (other.front, other.evaluations)

    effect.__name__ = f"another_{name}_changes_the_search"
    return effect


QUICK = ("parsimony", "islands", "complexity")
for _name in OTHERS:
    row(_name, faces=STATIC if _name == "parsimony" else ("config",), slow=_name not in QUICK)(_changes(_name))
