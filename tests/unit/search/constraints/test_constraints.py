"""Constraints against plain recursion over trees; searches under constraints."""

from __future__ import annotations

import ast
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.search.evolution.oracles import Node, NodeCounter, population_of, primitive_set, tree_of

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.monotonic import PAIRS, Monotonicity
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import functions_of
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.constraints.compiled import CompiledConstraints, ConstrainedEvaluator, Scaling
from shine.search.constraints.constraints import Constraints, check_constraints
from shine.search.constraints.dimensional_analysis import DimensionalAnalysis
from shine.search.constraints.units import parse_unit
from shine.search.evolution.operators.creation import ptc2

PRIMITIVES = primitive_set("neg sqrt add mul where", "x y z")
NAMES = ["neg", "sqrt", "add", "mul", "where", "x", "y", "z", "constant"]
FUNCTIONS = NAMES[:5]
RISING = np.linspace(1, 3, 40)


def name_of(population: Population, index: int, node: Node) -> str:
    code = int(population.codes[index, node.position])
    return {0: "constant", **{c: n for n, c in population.primitives.feature_codes.items()}}.get(
        code, ""
    ) or population.primitives.function(code).name


def count(population: Population, index: int, node: Node, name: str) -> int:
    """Occurrences of a name in a subtree."""
    below = sum(count(population, index, argument, name) for argument in node.arguments)
    return below + (name_of(population, index, node) == name)


def keeps(population: Population, index: int, constraints: Constraints) -> bool:
    """Whether an individual keeps limits, nesting, sizes of arguments, required and forbidden features."""
    root = tree_of(population, index)
    nodes = [node for node, _ in root.with_levels()]
    limits = all(count(population, index, root, name) <= most for name, most in constraints.limits.items())
    nesting = all(
        sum(count(population, index, argument, inner) for argument in node.arguments) <= most
        for node in nodes
        for inner, most in constraints.nesting.get(name_of(population, index, node), {}).items()
    )
    arguments = all(
        name_of(population, index, argument) == "constant"
        if limit == "constant"
        else limit in (None, -1) or sum(1 for _ in argument.with_levels()) <= limit
        for node in nodes
        for argument, limit in zip(
            node.arguments, constraints.arguments.get(name_of(population, index, node), ()), strict=False
        )
    )
    required = all(count(population, index, root, name) for name in constraints.required)
    forbidden = not any(count(population, index, root, name) for name in constraints.forbidden)
    return limits and nesting and arguments and required and forbidden


def allowed(constraints: Constraints, population: Population, scaling: Scaling = "none") -> list[bool]:
    """Which individuals the compiled constraints allow."""
    return CompiledConstraints(constraints, PRIMITIVES, scaling).allowed(population).tolist()


counts = st.integers(0, 3)
constraints_on_structure = st.builds(
    Constraints,
    limits=st.dictionaries(st.sampled_from(NAMES), counts, max_size=3),
    nesting=st.dictionaries(
        st.sampled_from(FUNCTIONS), st.dictionaries(st.sampled_from(NAMES), counts, max_size=2), max_size=2
    ),
    arguments=st.fixed_dictionaries(
        {},
        optional={
            name: st.tuples(*[st.sampled_from([1, 2, 3, 5, -1, None, None, "constant"])] * arity)
            for name, arity in zip(FUNCTIONS, (1, 1, 2, 2, 3), strict=True)
        },
    ),
    required=st.sampled_from([(), (), ("x",), ("x", "y")]),
    forbidden=st.sampled_from([(), (), ("z",)]),
)


@pytest.mark.slow
@given(constraints_on_structure, st.integers(0, 2**32))
def test_the_allowed_individuals_agree_with_recursion_over_their_trees(constraints, seed):
    population = ptc2(60, PRIMITIVES, 15, 6, Terminals(share=0.3), np.random.default_rng(seed))
    assert allowed(constraints, population) == [keeps(population, index, constraints) for index in range(60)]


@pytest.mark.parametrize(
    ("constraints", "text", "expected"),
    [
        (Constraints(), "x neg", True),
        (Constraints(limits={"neg": 1}), "x neg", True),
        (Constraints(limits={"neg": 1}), "x neg neg", False),
        (Constraints(nesting={"sqrt": {"sqrt": 0}}), "x sqrt y sqrt add", True),
        (Constraints(nesting={"sqrt": {"sqrt": 0}}), "x neg sqrt y add sqrt", False),
        (Constraints(nesting={"sqrt": {"neg": 1}}), "x neg y neg add sqrt", False),
        (Constraints(nesting={"sqrt": {"x": 0}}), "y sqrt x add", True),
        (Constraints(required=("x", "y")), "x neg", False),
        (Constraints(forbidden=("x",)), "x neg", False),
        (Constraints(limits={"constant": 1}), "1 2 add", False),
        # Cells behind the end of a tape are not constants.
        (Constraints(limits={"constant": 0}), "x", True),
    ],
)
def test_each_constraint_decides_its_examples(constraints, text, expected):
    assert allowed(constraints, population_of([text], PRIMITIVES, 20)) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 x x mul mul 3 add", True),  # 3 + 2 * (x * x)
        ("3 2 x x mul mul add", True),
        ("3 x x mul 2 mul add", True),
        ("x x mul", True),
        ("2 x x x mul mul mul", False),
        ("x x mul x add", False),  # no intercept: x is not a constant
        ("3 4 x x mul add add", False),  # one intercept, and another sum
        ("2 3 add", False),  # whichever is the intercept, the other constant is one too many
    ],
)
def test_a_written_slope_and_intercept_are_not_counted(text, expected):
    limits = {"mul": 1, "add": 0, **({"constant": 0} if text == "2 3 add" else {})}
    assert allowed(Constraints(limits=limits), population_of([text], PRIMITIVES, 20), "written") == [expected]


def test_formulas_need_the_unit_of_the_target_unless_an_implied_slope_provides_it():
    constraints = Constraints(units={"x": "kg", "y": "m", "z": "1"}, target_unit="kg*m")
    population = population_of(["x y mul", "x", "x y add", "2 x mul"], PRIMITIVES, 20)
    assert allowed(constraints, population, "none") == [True, False, False, True]
    assert allowed(constraints, population, "written") == [True, False, False, True]
    assert allowed(constraints, population, "implied") == [True, True, False, True]


def test_an_implied_slope_provides_no_unit_if_constants_are_plain_numbers():
    constraints = Constraints(units={"x": "kg", "y": "kg", "z": "1"}, target_unit="1", dimensionless_constants=True)
    population = population_of(["z", "x", "x y add", "2 z mul"], PRIMITIVES, 20)
    assert allowed(constraints, population, "implied") == [True, False, False, True]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limits": {"sin": -1}}, "limits of 'sin' must be a whole number from 0, is -1"),
        ({"limits": {"sin": 1.5}}, "limits of 'sin' must be a whole number from 0, is 1.5"),
        ({"nesting": {"sin": {"exp": -1}}}, "nesting of 'exp' must be a whole number"),
        ({"required": ("x",), "forbidden": ("x",)}, "required and forbidden both have 'x'"),
        ({"monotonic": {"x": "up"}}, "must be increasing or decreasing, is 'up' for 'x'"),
        ({"monotonic": {"x": "increasing"}, "forbidden": ("x",)}, "'x', which is forbidden"),
        ({"penalty": float("nan")}, "penalty must be a number from 0"),
        ({"units": {"x": "m"}}, "target_unit is missing"),
        ({"target_unit": "m"}, "units is missing"),
        ({"units": {"x": "furlong"}, "target_unit": "m"}, "the unit of 'x': unit 'furlong' cannot be read"),
        ({"units": {"x": "m"}, "target_unit": "m^"}, "the unit of the target: unit 'm\\^' cannot be read"),
    ],
)
def test_wrong_values_and_contradictions_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Constraints(**fields)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(limits={"sni": 1}), 'constraints.limits.sni: unknown function or feature "sni"; allowed are'),
        (Constraints(nesting={"x": {"sqrt": 1}}), 'constraints.nesting.x: unknown function "x"'),
        (Constraints(nesting={"sqrt": {"q": 1}}), 'constraints.nesting.sqrt.q: unknown function or feature "q"'),
        (Constraints(required=("w",)), 'constraints.required: unknown feature "w"; allowed are x, y, z'),
        (Constraints(forbidden=("w",)), 'constraints.forbidden: unknown feature "w"'),
        (Constraints(forbidden=("x", "y", "z")), "every feature is forbidden"),
        (Constraints(monotonic={"w": "increasing"}), 'constraints.monotonic.w: unknown feature "w"'),
        (Constraints(units={"x": "m"}, target_unit="m"), "feature 'y' is missing"),
        (
            Constraints(units=dict.fromkeys("xyz", "m"), target_unit="m", dimensionless_constants=True),
            "constraints.dimensionless_constants: does not go with linear scaling",
        ),
    ],
)
def test_constraints_that_do_not_fit_a_search_are_refused(constraints, message):
    with pytest.raises(ValueError, match=message):
        check_constraints(constraints, PRIMITIVES.functions, PRIMITIVES.features, True)


def test_a_forbidden_feature_needs_no_unit():
    constraints = Constraints(units={"x": "m", "y": "m"}, target_unit="m", forbidden=("z",))
    check_constraints(constraints, PRIMITIVES.functions, PRIMITIVES.features, True)


class Counter(NodeCounter):
    def score(self, population, threshold=np.inf):
        return super().score(population).within(threshold)


def test_individuals_that_are_not_allowed_are_never_evaluated():
    counter = Counter(PRIMITIVES.function_codes["neg"], 3)
    rules = CompiledConstraints(Constraints(required=("x",)), PRIMITIVES)
    population = population_of(["x", "y", "x neg", "y neg"], PRIMITIVES, 20)
    scores = ConstrainedEvaluator(counter, rules).score(population)
    assert scores.losses.tolist() == [3.0, np.inf, 2.0, np.inf]
    assert [seen.codes[:, 0].tolist() for seen in counter.seen] == [[1, 1]]


def test_penalties_multiply_the_loss():
    rules = CompiledConstraints(
        Constraints(monotonic={"x": "increasing"}, penalty=10),
        PRIMITIVES,
        wrong_shares=lambda population, slopes: np.where(population.codes[:, 0] == 1, 0.5, 0.0),
    )
    evaluator = ConstrainedEvaluator(Counter(PRIMITIVES.function_codes["neg"], 3), rules)
    population = population_of(["x", "y"], PRIMITIVES, 20)
    assert evaluator.score(population).losses.tolist() == [18.0, 3.0]
    assert evaluator.score(population, 10).losses.tolist() == [np.inf, 3.0]


def monotonicity(directions, rows=500):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-2, 2, rows), rng.uniform(1, 9, rows), np.full(rows, 3.0)])
    dataset = Dataset.from_arrays(X, X[:, 0], features=["x", "y", "z"])
    return Monotonicity(dataset, directions, 1, rng)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "direction", "slope", "share"),
    [
        ("x", "increasing", 1, 0),
        ("x", "decreasing", 1, 1),
        ("x", "decreasing", -3, 0),
        ("y", "increasing", 1, 0),  # does not depend on x
        ("x*x*x + y", "increasing", 2, 0),
        ("x - x", "decreasing", 1, 0),
        ("x*y", "decreasing", 0, 0),  # the model is a constant
        ("sqrt(x)", "increasing", 1, None),  # not finite for half of the rows
        ("x*x", "increasing", 1, None),
    ],
)
def test_the_wrong_share_counts_pairs_in_the_wrong_order(formula, direction, slope, share):
    population = Population.from_sources([formula], ("x", "y", "z"))
    found = monotonicity({"x": direction}).wrong_shares(population, np.array([float(slope)]))[0]
    assert (0.3 < found < 0.75) if share is None else found == share


def test_shares_of_several_features_add_up():
    population = Population.from_sources(["x - y", "x + y", "y - x"], ("x", "y", "z"))
    shares = monotonicity({"x": "increasing", "y": "increasing"}).wrong_shares(population, np.ones(3))
    assert shares.tolist() == [1, 0, 1]


@pytest.mark.parametrize("options", [{}, {"validation": "random"}, {"objective": lambda y: np.abs(y - RISING).max(1)}])
def test_the_chosen_formula_keeps_a_direction_that_the_best_one_breaks(options):
    given = {"generations": 0, "population": 20, "seeding": 0.0, "noise": "absolute", "guesses": ["2*x0"]}
    directions = {"monotonic": {"x0": "decreasing"}}
    front = shine.evolve(RISING[:, None] / 2, RISING, constraints=directions, **given, **options).front
    assert not front.best.tree.used_parameters
    assert "monotonicity" in front.reason
    assert any(model.loss < 1e-20 for model in front)


def test_pairs_stay_within_the_data_and_a_feature_that_never_changes_is_monotone():
    # The logarithm is finite on the data, where y is at least 1, but not below 0.999.
    population = Population.from_sources(["log(y - 0.999)", "z"], ("x", "y", "z"))
    shares = monotonicity({"y": "increasing", "z": "decreasing"}).wrong_shares(population, np.ones(2))
    assert shares.tolist() == [0, 0]
    assert PAIRS > 50


# Searches from end to end.

RNG = np.random.default_rng(7)
X = RNG.uniform(1, 5, (200, 3))
A, B, C = X.T
SHORT = {
    "features": ["a", "b", "c"],
    "population": 200,
    "generations": 6,
    "max_size": 12,
    "seeding": 0,
    "threads": 1,
    "noise": "absolute",
}


@pytest.mark.slow
def test_a_guess_that_is_not_allowed_is_dropped():
    guesses = ["a*b", "a*c", "a*a"]
    constraints = {"forbidden": ["b"], "limits": {"a": 1}}
    with pytest.warns(UserWarning, match=r"guesses\[\d\]: .* takes no part") as told:
        result = shine.evolve(
            X, A * C, primitives=["mul"], constraints=constraints, guesses=guesses, **{**SHORT, "generations": 0}
        )
    assert result.best.expression in ("a*c", "c*a")
    assert [str(warning.message).split(",")[0] for warning in told] == [
        "guesses[0]: 'a*b' breaks constraints.forbidden",
        "guesses[2]: 'a*a' breaks constraints.limits",
    ]


@pytest.mark.slow
def test_a_force_is_found_and_every_formula_is_consistent():
    units = {"a": "kg", "b": "m/s^2", "c": "s"}
    y = A * B + RNG.normal(0, 0.05, 200)
    result = shine.evolve(
        X,
        y,
        primitives=["add", "sub", "mul", "div", "exp", "sqrt"],
        constraints={"units": units, "target_unit": "N"},
        # Guesses of the seeding must keep the constraints as well.
        **SHORT | {"seeding": 0.3, "seconds": 60},
    )
    assert result.best.expression in ("a*b", "b*a")
    dimensions = {name: parse_unit(unit) for name, unit in units.items()}
    for model in result.front:
        primitives = PrimitiveSet(select(STANDARD, sorted(functions_of(model.tree))), ("a", "b", "c"))
        population = Population.from_trees([model.tree], primitives)
        assert DimensionalAnalysis(primitives, dimensions).consistent(population, parse_unit("N"))[0], model.expression


def test_bad_constraints_of_a_search_name_their_place():
    with pytest.raises(ValueError, match='unknown function or feature "sni"; did you mean "sin"'):
        shine.evolve(X, A, constraints={"limits": {"sni": 1}})
    with pytest.raises(ValueError, match=r"constraints: limits.sin must be at least 0, is -1"):
        shine.evolve(X, A, constraints={"limits": {"sin": -1}})
    with pytest.raises(ValueError, match=r"constraints has no 'nestin'; did you mean 'nesting'\? it has limits"):
        shine.evolve(X, A, constraints={"nestin": {}})


def test_a_written_line_is_no_argument():
    population = population_of(["x neg 2 mul 4 add", "x neg 2 mul neg"], PRIMITIVES, 20)
    assert allowed(Constraints(arguments={"mul": (1, 1), "add": (1, 1)}), population, "written") == [True, False]


@pytest.mark.parametrize("limit", [0, True, 1.5, "const", (2, "x"), {"a": 1}, -2])
def test_a_limit_of_an_argument_is_a_number_of_nodes_or_constant(limit):
    with pytest.raises(ValueError, match="arguments of 'sin' must be limited by a whole number of nodes from 1"):
        Constraints(arguments={"sin": limit})


def test_each_argument_needs_a_limit():
    with pytest.raises(ValueError, match="'pow' takes 2, and 1 are limited; give one limit for each"):
        check_constraints(Constraints(arguments={"pow": 3}), select(STANDARD, ["pow"]), ("x",), True)


def search_of_powers(**options):
    X = np.random.default_rng(0).uniform(1, 3, (100, 2))
    y = 1.495 ** X[:, 0] + (2.04 ** X[:, 1]) ** 0.973
    options = {"objective": lambda p: np.mean((p - y) ** 2, axis=1)} | options if options.pop("judged", 0) else options
    return shine.evolve(X, y, primitives=["+", "*", "^"], generations=5, seconds=20, population=200, **options)


def test_no_formula_of_a_classifier_breaks_a_limit():
    X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    options = {"primitives": ["add", "mul"], "generations": 1, "population_size": 30, "max_size": 5, "random_state": 0}
    options["settings"] = {"seeding": 0.0}
    front = shine.SymbolicClassifier(constraints={"limits": {"mul": 0}}, **options).fit(X, X[:, 0] * X[:, 1] > 0).front_
    assert not any("x0*x1" in model.expression for model in front)


@pytest.mark.slow
@pytest.mark.parametrize("fronts", [search_of_powers, partial(search_of_powers, judged=True)])
def test_no_model_of_a_search_breaks_the_limit_of_an_argument(fronts):
    for model in fronts(constraints={"arguments": {"^": (1, "constant")}}).front:
        for node in ast.walk(model.tree.result):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                assert isinstance(node.right, ast.Constant) and isinstance(node.left, ast.Name), model.expression


@pytest.mark.slow
def test_a_guess_that_breaks_the_limit_of_an_argument_is_told():
    with pytest.warns(UserWarning, match=r"guesses\[0\]: .* breaks constraints.arguments, so it takes no part"):
        search_of_powers(constraints={"arguments": {"^": (1, "constant")}}, guesses=["3*1.5**x1 + 2"])


def test_the_spelling_of_pysr_is_answered_with_the_equivalent():
    with pytest.raises(ValueError, match=r"write constraints=\{'arguments': \{'\^': \(-1, 1\)\}\}"):
        search_of_powers(constraints={"^": (-1, 1)})


@pytest.mark.parametrize(
    ("unit", "name", "shown"),
    [("kW", "heat", "heat [kW]"), ("1", "share", "share"), (None, "y", "y"), ("kW", "heat [kW/m2]", "heat [kW/m2]")],
)
def test_the_target_is_shown_with_its_unit(unit, name, shown):
    constraints = Constraints() if unit is None else Constraints(units={"a": "kg"}, target_unit=unit)
    assert constraints.with_unit(name) == shown
