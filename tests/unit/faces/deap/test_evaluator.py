"""The fitness of whole populations is that of DEAP, and `map` replaces the builtin one where it may."""

from __future__ import annotations

import functools
import math
import operator
import subprocess
import sys

import numpy as np
import pytest
from deap import gp
from unit.faces.deap.sets import (
    Individual,
    Several,
    any_share,
    arithmetic,
    compiled,
    evolving,
    if_then_else,
    mean_square,
    population,
    script,
    typed,
)

import shine
import shine.deap

X = np.linspace(-2, 2, 41)[:, None]
Y = X[:, 0] ** 2 - X[:, 0]
PAIRS = np.random.default_rng(3).normal(size=(30, 2))
TRIPLES = np.column_stack([PAIRS, np.arange(30) % 3 == 0]).astype(float)


def assert_same_fitness(ours, theirs, least):
    """Equal where DEAP computes a fitness; individuals that would end DEAP's script are not compared."""
    known = [(a, b) for (a,), b in zip(ours, theirs, strict=True) if b is not None]
    assert len(known) >= least * len(theirs)
    assert [a for a, _ in known] == [pytest.approx(b, rel=1e-11, abs=1e-25) for _, b in known]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pset", "rows"),
    [
        (arithmetic(1), X),
        (arithmetic(2, [(max, 2), (abs, 1), (if_then_else, 3), (operator.lt, 2)]), PAIRS),
        (arithmetic(2, [(math.hypot, 2), (math.exp, 1), (math.log, 1), (math.sqrt, 1), (operator.truediv, 2)]), PAIRS),
        (typed(), TRIPLES),
    ],
    ids=["symbolic regression", "conditions", "errors", "typed"],
)
def test_the_fitness_of_random_individuals_is_that_of_deap(pset, rows):
    individuals = population(pset, 300, seed=len(pset.mapping))
    y = rows[:, 0] * 0.5 + 1
    theirs = [mean_square(gp.compile(individual, pset), rows, y) for individual in individuals]
    assert_same_fitness(compiled(pset, rows, y)(individuals), theirs, 0.3)


@pytest.mark.slow
def test_automatically_defined_functions_are_written_out():
    psets = evolving()
    trees = [population(pset, 80, seed, high=3) for seed, pset in enumerate(psets)]
    individuals = [Several(parts) for parts in zip(*trees, strict=True)]
    theirs = [mean_square(gp.compileADF(individual, psets), X, Y) for individual in individuals]
    evaluator = compiled(psets, X, Y)
    ours = evaluator(individuals)
    assert_same_fitness(ours, theirs, 0.9)
    assert list(evaluator.map(evaluator.evaluate, individuals)) == ours
    call = shine.deap.compile(individuals[3], psets)
    assert call(0.5) == pytest.approx(gp.compileADF(individuals[3], psets)(0.5), rel=1e-14)


def nested(depth):
    """An individual of about 25 nodes, whose expression grows by a factor of 12 with each level of calls."""
    main, outer, inner = psets = evolving()
    call = functools.reduce(lambda inside, _: f"ADF0({inside}, x)", range(depth), "x")
    own = "add(ADF1(ARG0, ARG1), mul(ADF1(ARG0, ARG0), ADF1(ARG1, ARG0)))"
    texts = (call, main), (own, outer), ("sin(mul(ARG0, add(ARG1, ARG0)))", inner)
    return Several(gp.PrimitiveTree.from_string(*each) for each in texts), psets


OPTIONS = [
    {},
    {"linear_scaling": True},
    {"loss": "r2", "sample_weight": np.linspace(1, 2, len(Y))},
    {"objectives": ("mse", "mae", "errors", lambda individual: len(individual[0]))},
    {"exact_sums": True},
    {"dtype": "float32"},
    {"tier": "reference"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_calls_within_calls_are_computed_once_with_the_same_bits(options, monkeypatch):
    (short, psets), (long, _), (endless, _) = nested(2), nested(3), nested(40)
    evaluator = compiled(psets, X[:, :1], Y, **options)
    if options.get("dtype") != "float32":
        found = evaluator([short, long]), evaluator.predictions([short, long]).tobytes()
        monkeypatch.setattr("shine.faces.deap.evaluator.MOST_WRITTEN", 0)
        assert (evaluator([short, long]), evaluator.predictions([short, long]).tobytes()) == found
        monkeypatch.undo()
    fitnesses = evaluator([endless, short, long])
    assert fitnesses == [evaluator.evaluate(each) for each in (endless, short, long)]
    assert np.isfinite(fitnesses).all()
    theirs = [gp.compileADF(long, psets)(x) for x in X[:, 0].tolist()]
    if not options.get("linear_scaling"):
        assert np.allclose(evaluator.predictions([long])[0], theirs, rtol=1e-4)


def test_an_automatically_defined_function_needs_its_set():
    with pytest.raises(shine.UnsupportedSyntaxError, match=r"'ADF0' .* it evolves with the individuals; give its"):
        compiled(evolving()[0], X, Y)


def test_an_individual_needs_a_tree_for_each_set():
    with pytest.raises(ValueError, match="an individual needs 3 trees, one for each set; this one has 1"):
        compiled(evolving(), X, Y)([Several(population(evolving()[0], 1, 0))])


def test_names_and_constants_of_every_kind():
    pset = gp.PrimitiveSet("MAIN", 2)
    pset.addPrimitive(operator.sub, 2)
    pset.addEphemeralConstant("any_share_here", any_share)
    pset.addTerminal(math.pi, name="pi")
    pset.addTerminal(np.float64(0.1), name="tenth")
    pset.addTerminal(3)
    pset.addTerminal(True)
    pset.renameArguments(ARG0="b", ARG1="a")
    ephemeral = pset.mapping["any_share_here"]()
    nodes = [ephemeral, *(pset.mapping[name] for name in ("pi", "tenth", "3", "True", "a", "b"))]
    individuals = [gp.PrimitiveTree([pset.mapping["sub"], node, pset.mapping["b"]]) for node in nodes]
    individuals.append(gp.PrimitiveTree.from_string("sub(a, sub(2.75, b))", pset))
    predicted = compiled(pset, PAIRS, PAIRS[:, 0], tier="reference").predictions(individuals)
    expected = [[gp.compile(individual, pset)(*row) for row in PAIRS.tolist()] for individual in individuals]
    assert predicted.tolist() == expected


def plain_division(left, right):
    return 1 if right == 0 else left / right


def test_fitness_that_is_not_finite_is_infinite():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, math.exp, math.sqrt):
        pset.addPrimitive(function, 1)
    individuals = [
        gp.PrimitiveTree.from_string(text, pset) for text in ("log(ARG0)", "exp(exp(exp(ARG0)))", "sqrt(-1)")
    ]
    with pytest.raises(ValueError, match="math domain error"):
        gp.compile(individuals[0], pset)(0.0)
    with pytest.raises(OverflowError):
        gp.compile(individuals[1], pset)(2.0)
    assert compiled(pset, X, Y)(individuals) == [(math.inf,)] * 3


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [lambda nodes: nodes[:-1], lambda nodes: [*nodes, nodes[-1]], lambda nodes: []])
def test_a_tree_that_is_not_complete_is_rejected(cut):
    pset = arithmetic()
    whole = gp.PrimitiveTree.from_string("add(ARG0, mul(ARG0, ARG0))", pset)
    with pytest.raises(ValueError, match="individual 1 is not one complete tree in prefix order"):
        compiled(pset, X, Y)([whole, gp.PrimitiveTree(cut(list(whole))), whole])


def test_a_node_of_another_set_is_rejected():
    other = gp.PrimitiveSet("OTHER", 1)
    other.addPrimitive(math.tan, 1)
    other.addTerminal("text", name=None)
    evaluator = compiled(arithmetic(), X, Y)
    with pytest.raises(ValueError, match="primitive 'tan' is not in the primitive set the evaluator was made of"):
        evaluator([gp.PrimitiveTree.from_string("tan(ARG0)", other)])
    with pytest.raises(ValueError, match="terminal 'text' is 'text' of type str: no number"):
        evaluator([gp.PrimitiveTree([other.mapping["text"]])])


def test_data_that_do_not_fit_are_rejected():
    with pytest.raises(shine.DataError, match=r"X has 2 columns, but the primitive set takes \(ARG0\)"):
        compiled(arithmetic(1), PAIRS, PAIRS[:, 0])
    with pytest.raises(ValueError, match="unknown loss 'best'"):
        compiled(arithmetic(1), X, Y, "best")
    with pytest.raises(TypeError, match="pset is a primitive set of DEAP, or a sequence of them, not int"):
        compiled(3, X, Y)


def test_without_deap_one_line_says_what_to_install():
    code = "import sys; sys.modules['deap'] = None; import shine.deap"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert last.endswith("MissingExtraError: shine.deap needs DEAP; install it with: pip install 'shine-gp[deap]'")


# map ------------------------------------------------------------------------------------------------------------------


def refusing(*_):
    raise AssertionError("it was called")


def test_map_evaluates_trees_without_calling_the_toolboxs_evaluate():
    pset = arithmetic()
    toolbox = script(pset, X, Y, refusing)
    evaluator, individuals = compiled(pset, X, Y, check=False), population(pset, 10, 4)
    assert list(evaluator.map(toolbox.evaluate, iter(individuals))) == evaluator(individuals)


def test_map_replaces_the_function_it_is_made_for():
    pset = arithmetic()
    individuals, calls = population(pset, 5, 7), []

    def scored(individual):
        calls.append(individual)
        return (mean_square(gp.compile(individual, pset), X, Y),)

    evaluator = compiled(pset, X, Y, evaluate=scored)
    assert evaluator.map(scored, individuals) == evaluator(individuals)
    count = len(calls)
    assert evaluator.map(scored, individuals) == evaluator(individuals)
    assert 0 < len(calls) == count


@pytest.mark.parametrize(
    "other", [lambda loss: (loss * len(X),), lambda loss: (loss, 1.0), lambda loss: (loss + 0.01,)]
)
def test_a_function_that_computes_another_fitness_is_noticed(other):
    pset = arithmetic()

    def different(individual):
        return other(mean_square(gp.compile(individual, pset), X, Y))

    toolbox = script(pset, X, Y, different)
    with pytest.raises(ValueError, match=r"toolbox.evaluate returns \(.*, but the compiled mse is .* check=False"):
        compiled(pset, X, Y).map(toolbox.evaluate, population(pset, 5, 8))


# compile --------------------------------------------------------------------------------------------------------------


def test_a_compiled_individual_takes_numbers_and_arrays_by_position_and_by_name():
    pset = arithmetic(2)
    pset.renameArguments(ARG0="x", ARG1="y")
    individual = Individual.from_string("add(protected_division(x, y), mul(x, sin(y)))", pset)
    function, own = shine.deap.compile(individual, pset), gp.compile(individual, pset)
    for a, b in [(1.5, 2.0), (1.5, 0.0), (-3, 4)]:
        assert function(a, b) == pytest.approx(own(a, b), rel=1e-15)
        assert function(y=b, x=a) == function(a, b)
    assert isinstance(function(1.0, 2.0), float)
    expected = [[own(a, b) for b in PAIRS[:3, 1].tolist()] for a in PAIRS[:, 0].tolist()]
    np.testing.assert_allclose(function(PAIRS[:, :1], PAIRS[:3, 1]), expected, rtol=1e-14)


@pytest.mark.parametrize("arguments", [(), (1.0,), (1.0, 2.0, 3.0), (1.0, "2"), (1.0, None)])
def test_a_compiled_individual_rejects_wrong_arguments(arguments):
    pset = arithmetic(2)
    function = shine.deap.compile(Individual.from_string("add(ARG0, ARG1)", pset), pset)
    with pytest.raises(TypeError):
        function(*arguments)
