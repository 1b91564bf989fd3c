"""Guesses: graphs, SymPy expressions and text, in the features and primitives of a search."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import PARAMETERS, trees

from shine import SymbolicClassifier, SymbolicRegressor, evolve
from shine.base.errors import ConfigError, GraphImportError, UnsupportedSyntaxError
from shine.faces.config import GraphGuess, dump_config, read_config, read_job
from shine.formats.read.guesses import GraphGuessError, Rewriting, graph_tree
from shine.lang.forms.tape import functions_of
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.program import Program
from shine.lang.values import written

GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } } }
node { name: "b" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } } }
node { name: "half" op: "Const" attr { key: "dtype" value { type: DT_DOUBLE } }
       attr { key: "value" value { tensor { dtype: DT_DOUBLE tensor_shape { } double_val: 0.5 } } } }
node { name: "square" op: "Mul" input: "x" input: "x" attr { key: "T" value { type: DT_DOUBLE } } }
node { name: "less" op: "Mul" input: "half" input: "square" attr { key: "T" value { type: DT_DOUBLE } } }
node { name: "sum" op: "AddV2" input: "less" input: "b" attr { key: "T" value { type: DT_DOUBLE } } }
"""
"""0.5*x*x + b"""

CONFIG = """
data: {generate: {rows: 20, noise: 0.1, features: {a: {uniform: {low: 1, high: 2}}, b: {uniform: {low: 1, high: 2}}},
                  target: 0.5*a*a + b}}
evolution: {population: 20, max_size: 9, seeding: 0.0}
stop: {generations: 4, seconds: null}
"""


def program(text: str, *names: str, dtype: str = "float64", output: str = "result", **options: Any) -> Program:
    """A program of one formula; options are those of its parameters, by name."""
    build = ProgramBuilder()
    for name in names:
        build.parameter(name, dtype, **options.get(name, {}))
    value = build.assign(dtype, ast.parse(text, mode="eval").body)
    return build.finish([(output, value, dtype)])


# ---- graphs as formulas ----


def test_inputs_with_the_names_of_features_need_no_mapping():
    tree = graph_tree(program("x*x + b", "x", "b"), ["b", "c", "x"])
    assert (tree.parameters, str(tree)) == (("b", "c", "x"), "x*x + b")


def test_a_mapping_says_which_feature_an_input_is():
    graph = program("x/y", "x", "y")
    assert str(graph_tree(graph, ["a", "b"], mapping={"x": "b", "y": "a"})) == "b/a"
    assert str(graph_tree(graph, ["x", "y"], mapping={"x": "y", "y": "y"})) == "y/y"


@pytest.mark.parametrize(
    ("options", "keys", "message"),
    [
        ({}, (), "the graph's input 'x' is not a feature; the features are a, b; say which it is: features: {x: a}"),
        ({"mapping": {"z": "a"}}, ("features", "z"), "the graph has no input 'z'; its inputs are x, y"),
        ({"mapping": {"x": "c"}}, ("features", "x"), "'c' is not a feature; the features are a, b"),
        ({"output": "loss"}, ("output",), "the graph has no output 'loss'; it has result"),
    ],
)
def test_an_unknown_name_is_reported_with_the_known_names(options, keys, message):
    with pytest.raises(GraphGuessError) as caught:
        graph_tree(program("x + y", "x", "y"), ["a", "b"], **options)
    assert (str(caught.value), caught.value.keys) == (message, keys)


def test_one_of_several_outputs_has_to_be_chosen():
    build = ProgramBuilder()
    x = build.parameter("x", "float64")
    outputs = [(text, build.assign("float64", ast.parse(text, mode="eval").body), "float64") for text in ("x+1", "x*2")]
    graph = build.finish(outputs)
    assert str(graph_tree(graph, [x], output="x*2")) == "x*2"
    with pytest.raises(GraphGuessError, match=r"several outputs; choose one: x\+1, x\*2"):
        graph_tree(graph, [x])


def test_single_numbers_of_a_graph_are_constants():
    graph = program("x*slope + offset", "x", "slope", "offset", slope={"value": np.array([[2.5]])},
                    offset={"default": np.array(1.0)})  # fmt: skip
    assert str(graph_tree(graph, ["x"])) == "x*2.5 + 1.0"
    assert str(graph_tree(graph, ["x", "offset"])) == "x*2.5 + offset"
    with pytest.raises(GraphImportError, match="depends on the constant array 'slope'"):
        graph_tree(program("x*slope", "x", "slope", slope={"value": np.arange(3.0)}), ["x"])


# ---- in the primitives of a search ----


SAID_BY_OTHERS = ("add", "sub", "mul", "neg", "square", "cube", "abs", "relu", "max")


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(trees(SAID_BY_OTHERS))
def test_a_formula_in_other_words_computes_the_same_numbers(tree):
    words = {"add", "mul", "max"}
    terms = Rewriting(words)
    translated = written(
        terms, terms.read(tree, [terms.parameter(name) for name in tree.parameters], words), PARAMETERS
    )
    assert functions_of(translated) <= words
    columns = [np.array([0.7, -1.3, 2.5]), np.array([1.1, 0.4, -0.6]), np.array([-2.0, 3.5, 0.0])]
    np.testing.assert_array_equal(evaluate(translated, columns), evaluate(tree, columns))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("-x", ["mul"], "-1*x"),
        ("-x", ["sub"], "0 - x"),
        ("x - y", ["add", "mul"], "x + -1*y"),
        ("x - y", ["add", "neg"], "x + -y"),
        ("x/y", ["mul", "inv"], "x*inv(y)"),
        ("1/x", ["inv"], "inv(x)"),
        ("x*x", ["square"], "square(x)"),
        ("square(x)", ["mul"], "x*x"),
        ("x**3", ["mul"], "x*x*x"),
        ("x**3", ["mul", "cube"], "cube(x)"),
        ("x**16", ["square"], "square(square(square(square(x))))"),
        ("x**1.5", ["mul", "sqrt"], "x*sqrt(x)"),
        ("x**0.25", ["sqrt"], "sqrt(sqrt(x))"),
        ("x**-2", ["inv", "square"], "inv(square(x))"),
        ("x/2", ["mul"], "x*0.5"),
        ("2**x", ["mul", "square"], "2**x"),
        ("x**0.5", ["sqrt"], "sqrt(x)"),
        ("sqrt(x)", ["pow"], "x**0.5"),
        ("abs(x)", ["max", "mul"], "max(x, -1*x)"),
        ("abs(x)", ["sqrt", "square"], "sqrt(square(x))"),
        ("sigmoid(x)", ["div", "add", "exp", "sub"], "1/(1 + exp(0 - x))"),
        ("relu(x)", ["where", "gt"], "x if x > 0 else 0"),
        ("min(x, y)", ["where", "lt"], "x if x < y else y"),
        ("sin(x)", ["cos"], "sin(x)"),
    ],
)
def test_a_missing_primitive_is_written_with_others(text, words, expected):
    tree = parse(text, ["x", "y"])
    terms = Rewriting(words)
    value = terms.read(tree, [terms.parameter(name) for name in tree.parameters], words)
    assert str(written(terms, value, tree.parameters)) == expected


# ---- searches ----

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 2, (60, 2))
A, B = X.T
FAST: dict[str, Any] = {"generations": 0, "population": 5, "seeding": 0.0, "noise": "absolute", "features": ["a", "b"]}
"""Options of a search that finds nothing but its guesses."""


def graph_file(folder: Path, text: str = GRAPH, name: str = "model.pbtxt") -> Path:
    pytest.importorskip("google.protobuf", reason="needs protobuf: pip install 'shine-gp[tensor]'")
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.slow
def test_constants_of_a_graph_are_fitted():
    target = 0.8 * A * A + B
    free = evolve(X, target, guesses=[program("0.5*a*a + b", "a", "b")], **FAST, linear_scaling=False)
    assert free.best.loss < 1e-20


def test_a_sympy_power_becomes_a_product_without_pow():
    sympy = pytest.importorskip("sympy")
    a, b = sympy.symbols("a b")
    result = evolve(X, A**3 - B, guesses=[a**3 - b], primitives=["add", "mul"], **FAST)
    assert result.best.loss < 1e-20


def test_a_text_s_power_does_so_too_and_others_are_refused():
    result = evolve(X, A**3 - B, guesses=["a**3 - b"], primitives=["add", "mul"], **FAST)
    assert result.best.loss < 1e-20
    with pytest.raises(UnsupportedSyntaxError, match=r"guesses\[1\]: primitive 'pow' is not in the primitive set"):
        evolve(X, A, guesses=["a", "a**b"], primitives=["add", "mul"], **FAST)
    assert evolve(X, A**3 - B, guesses=["a^3 - b"], primitives=["add", "mul"], **FAST).best.loss < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [SymbolicRegressor, SymbolicClassifier])
def test_estimators_start_from_graphs(estimator):
    target = 0.5 * A * A + B if estimator is SymbolicRegressor else (0.5 * A * A + B > 2.5)
    graph = {"graph": program("0.5*u*u + v", "u", "v"), "features": {"u": "x0", "v": "x1"}}
    model = estimator(
        guesses=[graph], generations=0, population_size=5, settings={"seeding": 0.0}, random_state=0, max_time=1.0
    )
    assert model.fit(X, target).score(X, target) > 0.95


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (program("u + a", "u", "a"), GraphImportError, "the graph's input 'u' is not a feature; the features are a, b"),
        (program("atan(a)", "a"), UnsupportedSyntaxError, "primitive 'atan' is not in the primitive set; it has add"),
        (
            program("+".join("a" * 40), "a"),
            ValueError,
            "guesses: initial individual 0 has 79 nodes, and max_size is 30",
        ),
        ({"grph": 1}, ValueError, "a graph to start from has unknown key 'grph'; its keys are graph, output, features"),
        ({"output": "y"}, ValueError, "a graph to start from has no 'graph'; its keys are graph, output, features"),
        (Path("none.pb"), GraphImportError, "none.pb"),
        (3, TypeError, "an ast node, a Tree, a model or a SymPy expression, not int"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused(seed, error, message):
    if isinstance(seed, Path):
        pytest.importorskip("google.protobuf")
    with pytest.raises(error, match=message):
        evolve(X, A, guesses=[seed], **FAST)


# ---- configurations and runs ----


def configured(folder: Path, guesses: str, graph: str = GRAPH) -> Path:
    graph_file(folder, graph)
    path = folder / "c.yaml"
    path.write_text(f"{CONFIG}guesses:\n{guesses}")
    return path


def problems(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_job(path, overrides)
    return [problem.replace(f"{path.parent}/", "") for problem in caught.value.problems]


def test_a_job_has_formulas_in_the_place_of_graphs(tmp_path):
    path = configured(tmp_path, "  - a + b\n  - {graph: model.pbtxt, features: {x: a}}\n")
    assert read_config(path).guesses == ("a + b", GraphGuess(graph=tmp_path / "model.pbtxt", features={"x": "a"}))
    assert read_job(path).config.guesses == ("a + b", "0.5*(a*a) + b")


def test_a_configuration_with_graphs_can_be_written_and_read(tmp_path):
    config = read_config(configured(tmp_path, "  - {graph: model.pbtxt, output: sum}\n  - other.pb\n  - a\n"))
    (tmp_path / "again.yaml").write_text(dump_config(config))
    assert read_config(tmp_path / "again.yaml") == config


MISTAKES = {
    "  - model.pbtxt": (
        "c.yaml:7:5: guesses.0: the graph's input 'x' is not a feature; the features are a, b; say which it is: "
        "features: {x: a}"
    ),
    "  - {graph: model.pbtxt, features: {u: a}}": (
        "c.yaml:7:37: guesses.0.features.u: the graph has no input 'u'; its inputs are x, b"
    ),
    "  - {graph: model.pbtxt, features: {x: c}}": (
        "c.yaml:7:37: guesses.0.features.x: 'c' is not a feature; the features are a, b"
    ),
    "  - {graph: model.pbtxt, output: loss}": "c.yaml:7:5: guesses.0: ",
    "  - {graph: none.pb}": "c.yaml:7:5: guesses.0: none.pb: ",
    "  - {grph: model.pbtxt}": (
        'c.yaml:7:6: guesses.0.grph: unknown key "grph"; did you mean "graph"? allowed are graph, output, features'
    ),
    "  - {output: sum}": "c.yaml:7:5: guesses.0.graph: is missing, and has no default",
    "  - {graph: 3}": "c.yaml:7:6: guesses.0.graph: must be text, is 3",
    "  - {graph: model.pbtxt, features: [a]}": "c.yaml:7:26: guesses.0.features: must be a mapping of keys to values",
    "  - 3": "c.yaml:7:5: guesses.0: must be text, is 3",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_reported_at_its_place(text, tmp_path):
    found = problems(configured(tmp_path, f"{text}\n"))
    assert MISTAKES[text] in found[-1]
    assert len(found) == 1 + ("grph" in text)


def test_graphs_keep_the_limits_of_the_search(tmp_path):
    path = configured(tmp_path, "  - {graph: model.pbtxt, features: {x: a}}\n")
    (size,) = problems(path, "evolution.max_size=5")
    assert size == "c.yaml:7:5: guesses.0: has 7 nodes; evolution.max_size allows 5"
    (depth,) = problems(path, "evolution.max_depth=3")
    assert depth == "c.yaml:7:5: guesses.0: has 4 levels; evolution.max_depth allows 3"
    (primitive,) = problems(path, "primitives=[mul, sin]")
    assert "guesses.0: primitive 'add' is not in the primitive set; it has mul, sin" in primitive
