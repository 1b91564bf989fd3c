"""`shine.evolve` from end to end on small data."""

from __future__ import annotations

import ast

import numpy as np
import pandas
import polars
import pytest

import shine
from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.evaluate.tiers.evaluator import TIERS
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import select
from shine.lang.vocabulary import primitive_table
from shine.search.finishing import refinement

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (200, 2))
A, B = X.T
ARITHMETIC = ["add", "sub", "mul"]


def evolve(y, **options):
    """A small search that no clock ends."""
    defaults = {
        "features": ["a", "b"],
        "primitives": ARITHMETIC,
        "population": 200,
        "generations": 20,
        "seconds": None,
        "seeding": 0.0,
        "noise": "absolute",
    }
    return shine.evolve(X, y, **defaults | options)


def front(result):
    """Expressions and losses, to compare runs by."""
    return [(model.expression, model.loss) for model in result.front]


def gap(x, y):
    return x * x - y


def leaning_gap(x, y):
    return gap(x, y) + x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "primitives", "expected"),
    [
        (A * B, ARITHMETIC, {"a*b", "b*a"}),
        (np.sqrt(A * A + B * B), [*ARITHMETIC, "sqrt"], {"sqrt(a**2 + b**2)", "sqrt(b**2 + a**2)"}),
    ],
)
def test_a_formula_is_recovered(y, primitives, expected):
    result = evolve(y, primitives=primitives, population=1000, generations=50, seed=3)
    assert result.best.expression in expected
    assert result.best.loss < 1e-12
    assert result.best.r2 == pytest.approx(1, abs=1e-12)
    assert result.stopped_by == "loss"


def test_slope_and_intercept_become_part_of_the_formula():
    best = evolve(3 * A + 2).best
    # a*3 + 2, written with a constant each: three operands, two operators.
    assert best.complexity == 5
    assert best.predict([[10.0, 1.0]])[0] == pytest.approx(32, rel=1e-12)
    assert best.loss < 1e-20


@pytest.mark.parametrize(("y", "size"), [(A, 1), (2 * A, 3), (A + 2, 3), (2 * A - 1, 5)])
def test_a_formula_carries_no_more_scaling_than_it_needs(y, size):
    assert evolve(y).best.complexity == size


def test_a_function_may_call_one_given_before_it():
    functions = select(*primitive_table(["add", gap, leaning_gap]))
    assert [(f.name, f.arity) for f in functions] == [("add", 2), ("gap", 2), ("leaning_gap", 2)]
    assert primitive_table([leaning_gap, gap])[1] == ["leaning_gap", "gap"]


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        ("a + c", UnsupportedSyntaxError, "unknown name 'c'; known names are a, b"),
        ("sin(a)", UnsupportedSyntaxError, "primitive 'sin' is not in the primitive set; it has add, sub, mul"),
        ("+".join("a" * 40), ValueError, "guesses: initial individual 0 has 79 nodes, and max_size is 30"),
    ],
)
def test_a_guess_that_does_not_fit_is_refused(seed, error, message):
    with pytest.raises(error, match=message):
        evolve(A, guesses=[seed])


def test_rows_of_weight_zero_do_not_mislead():
    y, weights = A * B, np.ones(200)
    y[::2], weights[::2] = 1e3, 0
    result = evolve(y, sample_weight=weights)
    assert result.best.expression in {"a*b", "b*a"}
    assert result.best.loss == pytest.approx(0, abs=1e-20)


@pytest.mark.slow
@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier != "reference"])
def test_the_front_does_not_depend_on_the_tier(tier):
    y = A * B + np.sin(A)
    options = {"population": 20, "generations": 2, "linear_scaling": False}
    assert front(evolve(y, tier=tier, **options)) == front(evolve(y, tier="reference", **options))


def test_a_constant_target_gives_a_constant_formula():
    result = evolve(np.full(200, 2.5), population=20, generations=2)
    assert ast.literal_eval(result.best.expression) == 2.5
    assert (result.best.loss, result.best.r2) == (0.0, 1.0)


@pytest.mark.slow
def test_the_constant_remains_if_no_individual_has_a_finite_loss():
    huge = np.full((5, 1), 1e200)
    result = shine.evolve(huge, [1, 2, 3, 4, 5], primitives=["mul"], constant_share=0.0, generations=1, max_size=1)
    assert [(m.expression, m.loss) for m in result.front] == [("3", 2.0)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"populatoin": 10}, TypeError, "unexpected keyword argument 'populatoin'"),
        ({"population": 1}, ValueError, "population must be at least 2, is 1"),
        ({"max_size": 0}, ValueError, "max_size must be at least 1, is 0"),
        ({"generations": 10**400}, ValueError, r"generations must be below 2\*\*63"),
        ({"crossover": 1.5}, ValueError, "crossover must be at most 1, is 1.5"),
        ({"tournament": "many"}, ValueError, "tournament must be a whole number, is 'many'"),
        ({"constants": (2.0, 1.0)}, ValueError, "constants must be a finite range"),
        ({"generations": -1}, ValueError, "generations must be at least 0, is -1"),
        ({"seconds": 0}, ValueError, "seconds must be above 0, is 0"),
        ({"stop_loss": -1.0}, ValueError, "stop_loss must be at least 0, is -1.0"),
        ({"loss": "mape"}, ValueError, "unknown loss 'mape'; did you mean 'relative'"),
        ({"dtype": "int32"}, ValueError, "dtype must be one of float64, float32, is 'int32'"),
        ({"tier": "gpu"}, ValueError, "tier must be one of machine, native, reference, is 'gpu'"),
        ({"primitives": ["add", "plus"]}, ValueError, "unknown primitive 'plus'; did you mean 'add'. known are abs"),
        ({"primitives": ["add", "add"]}, ValueError, "primitive 'add' is listed twice"),
        ({"features": ["a b", "a b"]}, DataError, "feature name 'a b' occurs twice"),
        ({"sample_weight": [1.0]}, DataError, "sample_weight has 1"),
    ],
)
def test_invalid_settings_are_named(options, error, message):
    with pytest.raises(error, match=message):
        evolve(A, **options)


def test_a_constant_target_is_refused_where_the_loss_divides_by_its_variance():
    with pytest.raises(DataError, match="the target is constant, so loss 'r2' would divide by zero; use mse or mae"):
        evolve(np.ones(200), loss="r2")


@pytest.mark.slow
def test_a_function_with_the_name_of_a_primitive_of_shine_gets_a_number():
    def add(a, b):
        return a - b

    model = shine.evolve(
        X, A - B, primitives=[add, "mul"], generations=2, population=50, seconds=1, guesses=["add_1(x0, x1)"]
    )
    assert model.best.loss < 1e-20


@pytest.mark.slow
def test_the_front_does_not_depend_on_the_threads_that_share_the_seeding():
    y = np.sin(3.7 * A) * B + 0.1 * np.random.default_rng(5).standard_normal(len(A))
    options = {"seeding": 1.0, "seeding_members": 150, "primitives": ["mul", "sin"], "generations": 1, "max_size": 12}
    one, two = (evolve(y, threads=threads, **options) for threads in (1, 2))
    assert front(one) == front(two)
    assert one.evaluations == two.evaluations


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_search_does_not_wait_for_constants_to_converge(monkeypatch):
    y = np.exp(0.3 * A) * B
    whole = evolve(y)
    monkeypatch.setattr(refinement.Polishing, "versions", interrupt)
    result = evolve(y, report=lambda progress: interrupt() if progress.generation == 3 else None)
    assert (result.stopped_by, result.generations) == ("interrupted", 3)
    assert result.front[0].loss == whole.front[0].loss
    assert len(result.front) > 2
    assert whole.front[-1].loss < result.front[-1].loss < result.front[0].loss


def test_an_interrupt_while_constants_converge_ends_that(monkeypatch):
    monkeypatch.setattr(refinement.Polishing, "versions", interrupt)
    result = evolve(np.sin(A * B), generations=4)
    assert (result.stopped_by, result.generations) == ("interrupted", 4)
    assert [shine.parse(model.expression, ("a", "b")).size for model in result.front] == [
        model.complexity for model in result.front
    ]


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 4])
def test_the_guesses_of_an_interrupted_seeding_reach_the_result(calls, monkeypatch):
    predict, count = MachineEvaluator.predict, [0]

    def interrupted(self, population):
        count[0] += 1
        if count[0] == calls:
            raise KeyboardInterrupt
        return predict(self, population)

    monkeypatch.setattr(MachineEvaluator, "predict", interrupted)
    y = A * B + np.random.default_rng(5).standard_normal(len(A))
    result = evolve(y, seeding=1.0, seeding_members=300)
    assert (result.stopped_by, result.generations) == ("interrupted", 0)
    # The first two predictions are of expressions that formulas will be made of.
    assert (result.front[-1].r2 > 0.9) == (calls > 2)


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_data_frames_bring_their_headings(frame):
    columns = {"unit price (€)": A, "lambda": B}
    best = shine.evolve(frame(columns), A * B, primitives=["mul"], generations=0, population=20).best
    assert best.headings == {"unit_price": "unit price (€)", "lambda_": "lambda"}
    assert best.tree.parameters == tuple(best.headings)


def test_columns_that_have_numbers_get_names():
    best = shine.evolve(pandas.DataFrame(X), A * B, primitives=["mul"], generations=0, population=20).best
    assert best.headings == {"x0": "x0", "x1": "x1"}


@pytest.mark.parametrize("live", [5, "yes", None])
def test_live_is_true_or_false(live):
    with pytest.raises(TypeError, match=f"live is True or False, not {live!r}"):
        evolve(A, live=live, generations=0)


def test_an_objective_has_no_other_dtype():
    with pytest.raises(ValueError, match="gets predictions in float64; leave dtype out"):
        evolve(A, objective=lambda predictions: predictions[:, 0] ** 2, dtype="float32")
