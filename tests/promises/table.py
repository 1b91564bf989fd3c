"""The promises: what each parameter of each face does, as the documentation says, in a tiny search."""

from __future__ import annotations

import logging
import math
import operator
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli.commandline import shine as command
from promises.faces import EXACT, LAW, STATIC, X, Y, occurrences, run_config, search, word

import shine

REGRESSORS = ("evolve", "SymbolicRegressor", "config")
PYTHON = ("evolve", "SymbolicRegressor", "SymbolicClassifier", "SymbolicTransformer")
FITTED = PYTHON[1:]
DYNAMICS = ("SymbolicDynamics",)


@dataclass(frozen=True)
class Row:
    """A promise about parameters, by their words in `shine.evolve`, of some faces."""

    words: tuple[str, ...]
    faces: tuple[str, ...]
    effect: Callable[[str], None]
    slow: bool = False
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> set[tuple[str, str]]:
        """The face and the parameter of each promise."""
        return {(face, word(face, each)) for face in self.faces for each in self.words}


ROWS: list[Row] = []

CONSTANT = {"primitives": ["add"], "max_size": 1, "generations": 0}
"""Settings of a search that finds nothing but a constant."""
WEIGHTS = np.arange(40) % 3 + 1.0


def row(*words: str, faces: tuple[str, ...] = STATIC, slow: bool = False, faults: dict[str, str] | None = None) -> Any:
    """Put an effect into the table. `faults` says of a face what does not hold."""

    def put(effect: Callable[[str], None]) -> Callable[[str], None]:
        ROWS.append(Row(words, faces, effect, slow, tuple((faults or {}).items())))
        return effect

    return put


SECTION = "a section or an alternative of forms; its keys are in the table"
OWN_TESTS = "tested in full where it stands: "
FIELDS = "fields take seconds: tests/unit/faces/dynamics/test_fields.py"
ABSENT = {
    **{("config", name): SECTION for name in ("data", "evolution", "fitness", "constraints", "stop", "parallel")},
    **{("SymbolicDynamics", name): FIELDS for name in ("space", "derivatives", "periodic")},
    ("config", "dynamics*"): OWN_TESTS + "tests/cli/test_dynamics.py",
    ("config", "data.generate.features.*"): OWN_TESTS + "tests/unit/data/test_loading.py",
    ("config", "template.*"): "the same loader as of templates in Python, which tests/unit/search/templates try",
    ("config", "guesses.*"): OWN_TESTS + "tests/cli/test_guesses.py",
    ("config", "primitives.*"): "compiled functions need a file in LLVM IR: tests/unit/compiler/llvm",
    ("config", "evolution.island_settings.*"): "the fields of the evolution, which have rows; island_settings has one",
    ("config", "parallel.*"): "needs processes or a cluster; tests/unit/base/parallel. The result stays the same",
    ("config", "data.stream"): "changes the memory that is used, not the result: tests/unit/data/streams",
    ("config", "evolution.renewal"): "acts on tables of more rows than 'evolution.rows' and many generations",
    ("config", "evolution.max_exact_size"): "acts on laws of more than 30 nodes, which take long",
    ("config", "evolution.seeding_members"): "bounds work, of which a tiny search has too little",
    ("config", "evolution.part_mutation"): "acts only on parts that long seeding finds",
    ("config", "evolution.patience"): "acts after generations without a better loss, more than a tiny search has",
    ("config", "evolution.migrants"): "acts at migrations, beside migration_interval, which has a row",
    ("config", "evolution.lexicase_rows"): "acts beside selection=lexicase, which has a row",
    **{(face, "live"): "opens a page and waits for people: tests/unit/faces/live" for face in PYTHON},
    ("evolve", "settings"): "the fields of the evolution; each has its row",
}
"""Parameters without a row, by patterns, and why."""


def same(face: str, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two settings give one front."""
    return search(face, **one).front == search(face, **other).front


# ---- Limits -------------------------------------------------------------------------------------------------------


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


# ---- The language of formulas -------------------------------------------------------------------------------------


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
    own = search(face, primitives=["def leg(a, b): return sqrt(a*a + b*b)"])
    assert occurrences(own.expressions, "leg(") > 0


def _law(x0: float, x1: float) -> float:
    return x0 * x1 + math.sin(x0)


@row("guesses")
def a_guess_is_in_the_first_population_in_every_form(face: str) -> None:
    forms: list[Any] = [LAW, f"3.0*({LAW}) + 1.0", "x1*x0 + np.sin(x0)"]
    if face != "config":
        forms.append(_law)
    first = {"generations": 0, "population": 4, "max_size": 15}
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


@row("constraints.limits", "constraints.nesting", "constraints.arguments", faces=("config",))
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
            np.testing.assert_allclose(_calculated(model.expression, 2 * X), 4 * _calculated(model.expression, X))
    assert found.expressions
    with pytest.raises(Exception, match="furlongs"):
        search(face, **{**words, **({"units": (["furlongs", "m"], target)} if face != "config" else _wrong(words))})


def _wrong(words: dict[str, Any]) -> dict[str, Any]:
    return {"constraints": {**words["constraints"], "target_unit": "furlongs"}}


def _calculated(text: str, rows: np.ndarray) -> np.ndarray:
    """The values of a formula, by Python itself."""
    names = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "square": np.square}
    return np.zeros(len(rows)) + eval(text, {**names, "x0": rows[:, 0], "x1": rows[:, 1]})


# ---- Losses and rows ----------------------------------------------------------------------------------------------


@row("loss", faces=REGRESSORS)
def the_loss_of_the_front_is_that_of_its_predictions(face: str) -> None:
    spread = np.mean((Y - Y.mean()) ** 2)
    means: dict[str, Callable[[np.ndarray], Any]] = {
        "mse": lambda error: np.mean(error**2),
        "rmse": lambda error: np.sqrt(np.mean(error**2)),
        "mae": lambda error: np.mean(abs(error)),
        "nmse": lambda error: np.mean(error**2) / spread,
        "r2": lambda error: np.mean(error**2) / spread,
        "quantile(0.9)": lambda error: np.mean(np.maximum(0.9 * error, -0.1 * error)),
        "def own(prediction, target): return (prediction - target)**2": lambda error: np.mean(error**2),
    }
    for loss, mean in means.items():
        found = search(face, loss=loss)
        for text, given in found.front:
            np.testing.assert_allclose(given, mean(Y - _calculated(text, X)), rtol=1e-9, err_msg=loss)


@row("noise", faces=REGRESSORS)
def noise_that_grows_with_the_target_weighs_small_values_more(face: str) -> None:
    rows = {"y": np.exp(X[:, 0]), "primitives": ["mul"], "max_size": 5}
    kinds = ("absolute", "counts", "relative", "log", "auto")
    # The constant of the front is the weighted mean.
    mean = {noise: float(search(face, **rows, noise=noise).expressions[0]) for noise in kinds}
    np.testing.assert_allclose(mean["absolute"], rows["y"].mean(), rtol=1e-6)
    assert mean["absolute"] > mean["counts"] > mean["relative"]
    assert mean["log"] < mean["counts"]


@row("noise", faces=REGRESSORS, faults=dict.fromkeys(REGRESSORS, "noise is dropped where all formulas are constants"))
def noise_weighs_the_rows_of_a_constant(face: str) -> None:
    constants = {search(face, **CONSTANT, noise=noise).best for noise in ("absolute", "counts", "relative")}
    assert len(constants) == 3


@row("sample_weight", faces=REGRESSORS)
def the_constant_is_the_weighted_mean(face: str) -> None:
    found = search(face, sample_weight=WEIGHTS, **CONSTANT)
    np.testing.assert_allclose(float(found.expressions[0]), np.average(Y, weights=WEIGHTS))


@row("sample_weight", faces=FITTED)
def a_whole_weight_is_a_repeated_row(face: str) -> None:
    times = WEIGHTS.astype(int)
    weighted = search(face, sample_weight=times, y=_target(face))
    repeated = search(face, np.repeat(X, times, axis=0), np.repeat(_target(face), times))
    assert weighted.expressions == repeated.expressions
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-9)


def _target(face: str) -> np.ndarray:
    return Y > 8 if face == "SymbolicClassifier" else Y


@row("sigma", faces=REGRESSORS)
def the_constant_is_the_mean_weighted_by_known_noise(face: str) -> None:
    found = search(face, sigma=WEIGHTS, **CONSTANT)
    np.testing.assert_allclose(float(found.expressions[0]), np.average(Y, weights=WEIGHTS**-2.0))


@row("loss_columns", faces=REGRESSORS)
def a_loss_reads_its_columns(face: str) -> None:
    own = "def own(prediction, target, price): return price*(prediction - target)**2"
    found = search(face, loss=own, loss_columns={"price": WEIGHTS})
    for text, loss in found.front:
        np.testing.assert_allclose(loss, np.mean(WEIGHTS * (Y - _calculated(text, X)) ** 2), rtol=1e-9)


def _judged(face: str, **words: Any) -> list[np.ndarray]:
    """The predictions that an objective was shown."""
    shown = []

    def objective(predictions: np.ndarray) -> np.ndarray:
        shown.append(predictions)
        return predictions.var(axis=1)

    search(face, objective=objective, **words)
    return shown


@row("objective", faces=PYTHON[:2])
def an_objective_judges_in_place_of_the_loss(face: str) -> None:
    def far(predictions: np.ndarray) -> np.ndarray:
        return np.abs(predictions - 100).mean(axis=1)

    found = search(face, objective=far, linear_scaling=False)
    for text, loss in found.front:
        np.testing.assert_allclose(loss, abs(_calculated(text, X) - 100).mean(), rtol=1e-9)


@row("validation", "validation_fraction", "groups", faces=REGRESSORS)
def validation_changes_what_a_search_sees(face: str) -> None:
    words = {"y": Y + np.random.default_rng(1).normal(0, 3, 40), "max_size": 15, "generations": 5}
    groups = np.arange(40) % 8
    plain = search(face, **words).front
    halves = [search(face, **words, validation="random", validation_fraction=part).front for part in (0.25, 0.6)]
    whole = [search(face, **words, groups=groups, validation=kind).front for kind in (None, "groups")]
    assert halves[0] != halves[1]
    assert plain not in [*halves, *whole, search(face, **words, validation="time").front]
    assert whole[0] == whole[1]


@row("evidence", faces=("evolve", "config"))
def fewer_independent_rows_leave_constants_less_certain(face: str) -> None:
    noisy = 3 * X[:, 0] + np.random.default_rng(1).normal(0, 1, 40)
    words = {"y": noisy, "primitives": ["mul"], "max_size": 1}
    errors = [
        list(search(face, **words, evidence=rows).fitted.front[-1].standard_errors().values()) for rows in (None, 10)
    ]
    assert errors[0]
    assert (np.array(errors[1]) > 1.5 * np.array(errors[0])).all(), errors


@row("linear_scaling", faces=REGRESSORS)
def a_line_is_part_of_a_formula_with_linear_scaling_only(face: str) -> None:
    words = {"primitives": ["add"], "max_size": 5, "y": 3 * X[:, 0] + 1, "constant_steps": 0, "constant_share": 0.0}
    assert search(face, **words).losses[-1] < 1e-20
    assert search(face, **words, linear_scaling=False).losses[-1] > 1e-3


@row("dtype")
def a_law_is_exact_to_the_digits_of_the_number_type(face: str) -> None:
    rows = {"y": EXACT, "guesses": [LAW], "generations": 0, "max_size": 15}
    for dtype, most in (("float32", 1e-9), ("float64", 1e-25)):
        losses: list[float] = []
        if face == "config":
            losses.append(search(face, **rows, dtype=dtype).losses[-1])
        else:
            search(face, **rows, dtype=dtype, report=lambda progress, seen=losses: seen.append(progress.best_loss))
        if face != "SymbolicClassifier":
            assert losses[0] < most, dtype
    with pytest.raises((Exception, AssertionError), match="float32"):
        search(face, dtype="float16")


@row("dtype", faces=PYTHON[:2], faults=dict.fromkeys(PYTHON[:2], "an objective gets float64 whatever dtype is"))
def an_objective_gets_predictions_of_the_number_type(face: str) -> None:
    values = np.concatenate([shown.ravel() for shown in _judged(face, dtype="float32", linear_scaling=False)])
    assert (values == values.astype(np.float32)).all()


@row("tier", faces=("evolve", "config"), slow=True)
def every_tier_finds_the_same(face: str) -> None:
    best = {tier: search(face, tier=tier) for tier in ("auto", "machine", "native", "reference")}
    for found in best.values():
        np.testing.assert_allclose(found.losses[-1], best["reference"].losses[-1], rtol=1e-6)


@row("features", faces=("evolve",))
def features_name_the_columns(face: str) -> None:
    found = search(face, features=["unit price", "b"], guesses=["unit_price*b"])
    assert any("unit_price" in text for text in found.expressions)
    assert occurrences(found.expressions, "x0") == 0


@row("X", "y", faces=PYTHON)
def rows_may_be_arrays_lists_and_frames(face: str) -> None:
    y = _target(face)
    plain = search(face, X, y).front
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    for columns, target in ((X.tolist(), y.tolist()), (frame, y), (frame, pd.Series(y)), (np.asfortranarray(X), y)):
        assert search(face, columns, target).front == plain
    assert "cat_mass_g" in str(search(face, frame.rename(columns={"x0": "cat. mass / g"}), y).expressions)


# ---- What follows the search --------------------------------------------------------------------------------------


@row("report", faces=PYTHON)
def a_callback_is_called_in_every_generation_and_may_end_it(face: str) -> None:
    seen: list[int] = []
    search(face, report=lambda progress: seen.append(progress.generation))
    assert seen[:3] == [0, 1, 2]
    for answer in (True, np.True_):
        assert search(face, report=lambda progress, answer=answer: answer).stopped_by == "callback"


class _Told:
    def __init__(self, told: list[str]) -> None:
        self.told = told

    def __call__(self, progress: Any) -> None:
        self.told.append("generation")

    def begin(self, settings: Any) -> None:
        self.told.append("begin")

    def end(self, result: Any) -> None:
        self.told.append("end")


@row("report", faces=PYTHON)
def a_callback_with_begin_and_end_is_told_both(face: str) -> None:
    told: list[str] = []
    search(face, report=_Told(told))
    assert (told[0], told[-1], told.count("begin")) == ("begin", "end", told.count("end"))


@row("report", faces=PYTHON, faults={"evolve": "a callback that is false, as an empty collection is, is never called"})
def a_callback_that_is_false_is_called(face: str) -> None:
    class Empty(_Told):
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
        np.testing.assert_allclose(_calculated(found.expressions[-1], X * [1, 0]), 0)


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


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@row("verbose", faces=FITTED)
def verbose_searches_log_their_generations(face: str) -> None:
    lines = {}
    for verbose in (0, 1, 2):
        kept, logger = _Kept(), logging.getLogger("shine")
        logger.addHandler(kept)
        try:
            search(face, verbose=verbose)
        finally:
            logger.removeHandler(kept)
        lines[verbose] = len(kept.lines)
    assert lines[0] == 0 < lines[1] <= lines[2]
    assert lines[2] >= 3


# ---- Features as formulas -----------------------------------------------------------------------------------------


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


# ---- The evolution ------------------------------------------------------------------------------------------------

OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "rows": (10, {}),
    "creation": ("ramped", {}),
    "initial_size": (3, {}),
    "selection": ("lexicase", {}),
    "tournament": (15, {}),
    "survival": ("nsga2", {}),
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


for _name in OTHERS:
    row(_name, faces=STATIC if _name == "parsimony" else ("config",))(_changes(_name))


# ---- Equations of motion ------------------------------------------------------------------------------------------

TIMES = np.linspace(0, 4, 60)
DECAY = np.exp(-0.7 * TIMES)[:, None]
SWING = np.column_stack([np.cos(2 * TIMES), -2 * np.sin(2 * TIMES)])
MOTION = {
    "population_size": 60,
    "settings": {"seeding": 0.0, "stagnation": 3},
    "primitives": ["add", "mul"],
    "max_size": 6,
    "max_time": None,
    "n_jobs": 1,
    "random_state": 0,
}


def motion(x: Any = DECAY, t: Any = TIMES, u: Any = None, rows: dict[str, Any] | None = None, **words: Any) -> Any:
    """A fitted system, x' = -0.7*x by default."""
    return shine.SymbolicDynamics(**{**MOTION, **words}).fit(x, t, u, **(rows or {}))


def equations(**words: Any) -> str:
    return str(motion(**words).best_)


@row("x", "t", "states", faces=DYNAMICS)
def readings_may_be_arrays_frames_and_lists(face: str) -> None:
    frame = pd.DataFrame({"t": TIMES, "mass": DECAY[:, 0]})
    assert equations(rows={"states": ["mass"]}) == equations(x=frame, t="t")
    assert "mass' = -0.7*mass" in equations(x=frame, t="t")
    assert "-0.7*x0" in equations(t=float(TIMES[1]))
    assert "-0.7*x0" in equations(x=[DECAY, 2 * DECAY], t=[TIMES, TIMES])


@row("run", "sigma", faces=DYNAMICS)
def runs_and_noise_are_told(face: str) -> None:
    frame = pd.DataFrame({"t": [*TIMES, *TIMES], "x": [*DECAY[:, 0], *(2 * DECAY[:, 0])], "r": [1] * 60 + [2] * 60})
    assert "-0.7*x" in equations(x=frame, t="t", rows={"run": "r"})
    assert "-0.7*x0" in equations(rows={"sigma": 0.01})
    with pytest.raises(shine.DataError, match="sigma"):
        equations(rows={"sigma": -1.0})


@row("u", "controls", "autonomous", faces=DYNAMICS, slow=True)
def rates_depend_on_controls_and_on_the_time_if_they_may(face: str) -> None:
    level = np.cumsum(np.r_[0, np.diff(TIMES) * (TIMES[1:] + TIMES[:-1]) / 2])[:, None]
    assert "x0' = force" in equations(x=level, u=TIMES[:, None], rows={"controls": ["force"]})
    assert "x0' = t" in equations(x=level, autonomous=False)


@row("kind", "lags", faces=DYNAMICS)
def maps_tell_of_the_next_step_and_of_earlier_ones(face: str) -> None:
    steps = np.arange(30)
    assert "0.8*x0" in equations(x=0.8 ** steps[:, None] * 5, t=steps, kind="map")
    two = [1.0, 2.0]
    for _ in range(28):
        two.append(1.2 * two[-1] - 0.9 * two[-2])
    assert "x0_lag1" in equations(x=np.array(two)[:, None], t=steps, kind="map", lags=1)


@row("order", faces=DYNAMICS)
def positions_alone_have_second_derivatives(face: str) -> None:
    assert "x0'' = -4*x0" in equations(x=SWING[:, :1], order=2)


@row("hidden", faces=DYNAMICS, slow=True)
def a_hidden_state_has_an_equation(face: str) -> None:
    for hidden, name in ((1, "h"), ("w", "w")):
        assert f"{name}'" in equations(x=SWING[:, :1], hidden=hidden)


@row("template", faces=DYNAMICS)
def a_template_of_motion_is_kept(face: str) -> None:
    for form in ("x0' = -k*x0", {"formula": "x0' = -k*x0", "parameters": {"k": (0, None)}}):
        assert re.search(r"x0' = -0\.70*\d*\*x0", equations(template=form))


@row("conserve", faces=DYNAMICS)
def what_is_conserved_stays(face: str) -> None:
    model = motion(x=SWING, conserve="4*x0**2 + x1**2")
    path = model.simulate({"x0": 1.5, "x1": 0.5}, TIMES)
    kept = 4 * path[:, 0] ** 2 + path[:, 1] ** 2
    np.testing.assert_allclose(kept, kept[0], rtol=1e-3)


@row("units", faces=DYNAMICS)
def equations_agree_with_units(face: str) -> None:
    assert "-0.7*x0" in equations(units={"x0": "m", "t": "s"})
    with pytest.raises(ValueError, match="furlongs"):
        equations(units={"x0": "furlongs", "t": "s"})


@row("primitives", "max_size", "max_depth", faces=DYNAMICS)
def rates_have_the_given_functions_and_sizes(face: str) -> None:
    assert "cos(" in equations(x=np.sin(TIMES)[:, None], autonomous=False, primitives=["cos"])
    for bound in ({"max_size": 1}, {"max_depth": 1}):
        tables = motion(**bound).equations_.values()
        assert all(len(re.findall(r"x0", text)) <= 1 for table in tables for text in table["expression"])


@row("population", "parsimony", "settings", faces=DYNAMICS)
def settings_reach_the_search_for_each_rate(face: str) -> None:
    seen: list[int] = []
    for words in ({}, {"population_size": 200}, {"settings": {**MOTION["settings"], "islands": 4}}):
        last: list[int] = []
        motion(x=DECAY**2 + DECAY, **words, callbacks=lambda progress, last=last: last.append(progress.evaluations))
        seen.append(max(last))
    assert min(seen[1:]) > seen[0]
    with pytest.raises(ValueError, match="parsimony"):
        motion(parsimony=-1.0)


@row("seconds", "report", faces=DYNAMICS)
def a_fit_of_motion_ends_in_time_and_tells_its_callback(face: str) -> None:
    told: list[str] = []
    model = motion(x=DECAY**2 + DECAY, max_time=5.0, callbacks=_Told(told))
    assert (told[0], told[-1]) == ("begin", "end")
    assert model.seconds_ < 60


@row("seed", "threads", faces=DYNAMICS)
def motion_repeats_with_its_seed_on_any_threads(face: str) -> None:
    assert equations() == equations() == equations(n_jobs=2)


@row("verbose", faces=DYNAMICS)
def a_fit_of_motion_logs(face: str) -> None:
    kept, logger = _Kept(), logging.getLogger("shine")
    logger.addHandler(kept)
    try:
        motion(verbose=0)
        assert not kept.lines
        motion(verbose=2)
        assert kept.lines
    finally:
        logger.removeHandler(kept)


# ---- Data of a configuration --------------------------------------------------------------------------------------

CONFIG = {
    "primitives": ["add", "mul"],
    "evolution": {"population": 40, "seeding": 0.0, "max_size": 7},
    "fitness": {"noise": "absolute", "threads": 1},
    "stop": {"generations": 2},
}


def _of_csv(text: str, **data: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_text(text)
        return run_config({**CONFIG, "data": {"path": "rows.csv", "target": "y", **data}}, Path(folder))


def _means(text: str, **data: Any) -> float:
    """The constant of the front, which is the mean of the target."""
    return float(_of_csv(text, **data).front[0].expression)


TABLE = "a,b,y\n" + "".join(f"{n},{n % 3},{2 * n + 1}\n" for n in range(20))


@row("X", "y", "features", faces=("config",))
def a_file_has_the_target_and_the_features(face: str) -> None:
    assert occurrences([model.expression for model in _of_csv(TABLE).front], "a") > 0
    assert occurrences([model.expression for model in _of_csv(TABLE, features=["b"]).front], "a") == 0
    assert _means(TABLE, target="a") == np.mean(range(20))


@row("data.missing", "data.missing_marks", "data.decimal", "data.categories", faces=("config",))
def a_file_is_read_as_the_keys_say(face: str) -> None:
    gaps = TABLE + "-999,1,500\n,2,500\n"
    assert _means(gaps, missing="drop", missing_marks=[-999]) == _means(TABLE)
    filled = _means(gaps, missing="mean", missing_marks=[-999])
    np.testing.assert_allclose(filled, (sum(2 * n + 1 for n in range(20)) + 1000) / 22)
    with pytest.raises(AssertionError, match="missing"):
        _means(gaps)
    comma = "a;y\n" + "".join(f"{n},5;{n},25\n" for n in range(20))
    np.testing.assert_allclose(_means(comma, decimal=","), np.mean(range(20)) + 0.25)
    texts = "kind,a,y\n" + "".join(f"{'uvw'[n % 3]},{n},{n + 10 * (n % 3)}\n" for n in range(21))
    for categories, name in (("one-hot", "kind_is_"), ("ordinal", "kind"), ("ignore", "a")):
        assert name in str([model.expression for model in _of_csv(texts, categories=categories).front])
    with pytest.raises(AssertionError, match="kind"):
        _of_csv(texts)


@row("X", faces=("config",))
def the_command_line_predicts_what_the_model_does(face: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_text(TABLE)
        result = run_config({**CONFIG, "data": {"path": "rows.csv", "target": "y"}}, Path(folder))
        ended = command("predict", Path(folder, "run"), Path(folder, "rows.csv"))
    rows = np.array([[n, n % 3] for n in range(20)], dtype=float)
    assert [float(line) for line in ended.stdout.split()[1:]] == result.predict(rows).tolist()


@row("data.where", faces=("config",))
def a_condition_leaves_rows_out(face: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pd.DataFrame({"a": range(20), "y": [2.0 * n + 1 for n in range(20)]}).to_parquet(Path(folder, "rows.parquet"))
        data = {"path": "rows.parquet", "target": "y", "where": "a >= 10"}
        result = run_config({**CONFIG, "data": data}, Path(folder))
    assert float(result.front[0].expression) == np.mean([2 * n + 1 for n in range(10, 20)])


@row("data.fold", faces=("config",))
def a_fold_leaves_its_rows_out(face: str) -> None:
    means = [_means(TABLE, fold=f"{part}/4") for part in range(1, 5)]
    assert len(set(means)) == 4
    # Each row is left out once.
    np.testing.assert_allclose(np.mean(means), 20)


@row(*(f"data.generate{key}" for key in ("", ".rows", ".features", ".target", ".noise", ".seed")), faces=("config",))
def a_recipe_makes_the_rows(face: str) -> None:
    recipe = {"rows": 30, "features": {"a": {"uniform": {"low": 1, "high": 2}}}, "target": "3*a"}
    losses = {}
    for name, more in (("plain", {}), ("noisy", {"noise": 0.5}), ("other", {"noise": 0.5, "seed": 7})):
        with tempfile.TemporaryDirectory() as folder:
            losses[name] = run_config({**CONFIG, "data": {"generate": {**recipe, **more}}}, Path(folder)).best.loss
    assert losses["plain"] < 1e-20 < losses["noisy"] != losses["other"]


# ---- One model everywhere -----------------------------------------------------------------------------------------


@row("X", faces=REGRESSORS)
def predictions_exports_and_the_text_agree(face: str) -> None:
    found = search(face, generations=3)
    best = found.fitted.best_ if face == "SymbolicRegressor" else found.fitted.best
    space: dict[str, Any] = {}
    exec(best.export("python", name="law"), space)
    np.testing.assert_allclose(space["law"](*X[0]), found.predict()[0], rtol=1e-12)
    np.testing.assert_allclose(_calculated(best.expression, X), found.predict(), rtol=1e-12)
