"""The choice between the machine and native code: how it is made, and that it changes no bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from llvmlite import ir

import shine
from shine.compiler.codegen.native.programs import emit_program_scalar
from shine.compiler.codegen.numbers import ELEMENTARY, OPERATION_KINDS
from shine.compiler.llvm import cached
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers import costs, evaluator
from shine.evaluate.tiers.costs import Costs, HostCosts, nodes_by_kind
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.native_tier import NativeEvaluator
from shine.lang.forms.primitives import ARITIES
from shine.lang.population import Population
from shine.lang.program.trees import tree_program

ROWS = 1000
SOURCES = ["x0 + x1", "exp(x0)*2 - 3", "sin(cos(x0))", "1/x0 + x1*x1 - 2.5", "x1"]
POPULATION = Population.from_sources(SOURCES, ("x0", "x1"))

NATIVE_GAINS = HostCosts(compile=(2.0, 50.0), machine=(3e-3, 9e-3), native=(1e-3, 8e-3), single=0.0)
"""A host on which compiling pays for simple nodes from 1000 rows on, for elementary ones from 50 000."""


@pytest.mark.parametrize(
    ("compiling", "machine", "native", "nodes", "rows"),
    [
        (1.0, 3.0, 1.0, 5.0, 0.1),
        (2e-3, 5e-11, 3e-11, 25.0, 4e6),
        (1.0, 1.0, 1.0, 5.0, np.inf),
        (1.0, 1.0, 2.0, 5.0, np.inf),
    ],
)
def test_compiling_pays_from_the_rows_at_which_it_saves_more_than_it_costs(compiling, machine, native, nodes, rows):
    assert Costs(compiling, machine, native, nodes).break_even_rows == pytest.approx(rows)


@pytest.mark.parametrize(
    ("rows", "worth"),
    [(999, []), (1001, [0, 3]), (2190, [0, 3]), (2200, [0, 3, 4]), (26_000, [0, 1, 3, 4]), (51_000, [0, 1, 2, 3, 4])],
)
def test_each_individual_is_judged_by_its_own_nodes(rows, worth):
    nodes = np.array([[5.0, 0.0], [1.0, 2.0], [0.0, 1.0], [9.0, 0.0], [20.0, 1.0]])
    assert np.flatnonzero(NATIVE_GAINS.worth_compiling(nodes, rows)).tolist() == worth


def test_only_the_machine_uses_threads():
    nodes = np.array([[5.0, 0.0]])
    assert NATIVE_GAINS.worth_compiling(nodes, 10**6).all()
    assert NATIVE_GAINS.worth_compiling(nodes, 10**6, threads=2).all()
    assert not NATIVE_GAINS.worth_compiling(nodes, 10**6, threads=3).any()


def test_all_individuals_together_must_save_more_than_a_module_costs():
    one = np.array([[5.0, 0.0]])
    gain = 2000 * 5 * 2e-3 - 5 * 2.0
    for alone, many, worth in ((gain - 0.1, 1, True), (gain + 0.1, 1, False), (gain + 0.1, 2, True)):
        host = HostCosts(NATIVE_GAINS.compile, NATIVE_GAINS.machine, NATIVE_GAINS.native, alone)
        assert host.worth_compiling(np.repeat(one, many, axis=0), 2000).tolist() == [worth] * many


def test_an_empty_population_has_no_individual_to_compile():
    assert NATIVE_GAINS.worth_compiling(np.empty((0, 2)), 10**6).tolist() == []


@pytest.mark.parametrize(
    ("source", "simple", "elementary"),
    [
        ("2.5", 1, 0),
        ("x0*x1 + 1", 5, 0),
        ("exp(x0) + sin(x1)", 3, 2),
        ("x0**2.5", 2, 1),
        ("square(x0)", 2, 0),
        ("sigmoid(x0) - 1", 6, 1),
        ("log2(x0*3)", 4, 1),
        ("protected_log(x1)", 5, 1),
    ],
)
def test_nodes_are_counted_by_kind(source, simple, elementary):
    population = Population.from_sources([source, "x0 + x1*(x0 + x1*(x0 + x1*(x0 - 4)))"], ("x0", "x1"))
    assert nodes_by_kind(population).tolist() == [[simple, elementary], [15, 0]]


def instructions(name: str) -> int:
    """Instructions of a primitive for one row before optimization, including the functions it calls."""
    parameters = ("a", "b", "c")[: ARITIES[name]]
    module = ir.Module()
    tree = shine.parse(f"{name}({', '.join(parameters)})", parameters)
    emit_program_scalar(module, tree_program(tree, "float64"), "f")
    return sum(len(block.instructions) for function in module.functions for block in function.blocks)


def test_elementary_functions_have_many_more_instructions_than_others():
    counts = {name: instructions(name) for name in ARITIES}
    assert max(count for name, count in counts.items() if name not in ELEMENTARY) < 20
    assert min(count for name, count in counts.items() if name in ELEMENTARY) > 40


@pytest.fixture
def host(monkeypatch):
    """A host with known costs that records requests for them, and which individuals are compiled."""
    asked: list[str] = []
    compiled: list[list[int]] = []

    def known(dtype):
        asked.append(dtype)
        return NATIVE_GAINS

    class Noting(NativeEvaluator):
        def score(self, population, threshold=np.inf):
            compiled.append(population.sizes.tolist())
            return super().score(population, threshold)

    monkeypatch.setattr(evaluator, "host_costs", known)
    monkeypatch.setattr(evaluator, "NativeEvaluator", Noting)
    monkeypatch.setattr(evaluator, "SMALLEST", ROWS)
    return asked, compiled


def dataset(rows: int) -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset.from_arrays(rng.uniform(0.5, 2, (rows, 2)), rng.normal(size=rows))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scaling", [False, True])
def test_the_choice_of_individuals_to_compile_changes_no_bit(host, scaling, dtype):
    data = dataset(ROWS + 10)
    mixed = evaluator_of(data, "mse", scaling, dtype, "auto").score(POPULATION)
    machine = evaluator_of(data, "mse", scaling, dtype, "machine").score(POPULATION)
    for name in ("losses", "slopes", "intercepts"):
        assert getattr(mixed, name).tobytes() == getattr(machine, name).tobytes()
    asked, compiled = host
    assert asked == [dtype]
    # Individuals without an elementary function.
    assert compiled == [POPULATION.sizes[[0, 3, 4]].tolist()]


def test_small_data_need_no_measurement(host):
    data = dataset(ROWS - 1)
    evaluator_of(data, "mse", False, "float64", "auto").score(POPULATION)
    assert host == ([], [])


def test_nothing_is_compiled_if_there_is_a_threshold(host):
    scores = evaluator_of(dataset(ROWS + 10), "mse", False, "float64", "auto").score(POPULATION, 3.0)
    expected = MachineEvaluator(dataset(ROWS + 10), "mse", False, "float64").score(POPULATION, 3.0)
    assert scores.losses.tolist() == expected.losses.tolist()
    assert host == ([], [])


def test_a_named_tier_is_used_without_measuring(host):
    evaluator_of(dataset(ROWS + 10), "mse", False, "float64", "machine").score(POPULATION)
    assert host == ([], [])


def test_the_automatic_tier_predicts_on_the_machine(host):
    data = dataset(ROWS + 10)
    automatic_, machine = (evaluator_of(data, "mse", False, "float64", tier) for tier in ("auto", "machine"))
    assert automatic_.predict(POPULATION).tobytes() == machine.predict(POPULATION).tobytes()


@pytest.mark.slow
def test_measured_costs_are_positive():
    measured = costs.measured_host_costs("float64")
    assert len(measured.compile) == len(measured.machine) == len(measured.native) == len(OPERATION_KINDS)
    assert min(*measured.compile, *measured.machine, *measured.native) > 0
    # An elementary function has many times as many instructions as an operation.
    assert measured.machine[1] > measured.machine[0]
    assert measured.compile[1] > measured.compile[0]


def test_costs_are_measured_once_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path))
    measured = []

    def measure(dtype):
        measured.append(dtype)
        return NATIVE_GAINS

    monkeypatch.setattr(costs, "measured_host_costs", measure)
    for _ in range(2):
        costs.host_costs.cache_clear()
        assert costs.host_costs("float64") == NATIVE_GAINS
    costs.host_costs.cache_clear()
    assert measured == ["float64"]


WRONG = {
    "no JSON": b"{",
    "not text": b"\xff\xfe",
    "another type": b"[1, 2]",
    "a number": b"1",
    "nothing": b"null",
    "deep": b"[" * 100_000,
    "a name is missing": b'{"compile": [1.0, 1.0], "machine": [1.0, 1.0], "single": 1.0}',
    "one is too much": b'{"compile": [1.0, 1.0], "machine": [1.0, 1.0], "native": [1.0, 1.0], "single": 1.0, "x": 1}',
    **{
        name: json.dumps({"compile": [1.0, 1.0], "machine": machine, "native": [1.0, 1.0], "single": 1.0}).encode()
        for name, machine in {
            "NaN": [1.0, float("nan")],
            "infinite": [1.0, float("inf")],
            "negative": [-1.0, 1.0],
            "huge": [1e300, 1.0],
            "text": ["1.0", 1.0],
            "a boolean": [True, 1.0],
            "a huge integer": [10**400, 1.0],
            "one kind": [1.0],
            "three kinds": [1.0, 1.0, 1.0],
            "no list": 1.0,
        }.items()
    },
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_invalid_record_of_costs_is_measured_again(monkeypatch, tmp_path, kind):
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(costs.json, "dumps", lambda fields: WRONG[kind].decode("latin-1"))
    monkeypatch.setattr(costs, "measured_host_costs", lambda dtype: NATIVE_GAINS)
    with monkeypatch.context() as patched:
        if kind == "not text":
            patched.setattr(costs, "cached", lambda description, make, _: cached(description, lambda: WRONG[kind]))
        costs.host_costs.cache_clear()
        # Costs that cannot be kept make no individual worth compiling.
        assert not costs.host_costs("float64").worth_compiling(np.array([[5.0, 0.0]]), 10**9).any()
    monkeypatch.undo()
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(costs, "measured_host_costs", lambda dtype: NATIVE_GAINS)
    for _ in range(2):
        costs.host_costs.cache_clear()
        assert costs.host_costs("float64") == NATIVE_GAINS
    costs.host_costs.cache_clear()


def test_costs_of_other_sources_are_measured_again(monkeypatch, tmp_path):
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "cache"))
    measured = []

    def measure(dtype):
        measured.append(dtype)
        return NATIVE_GAINS

    monkeypatch.setattr(costs, "measured_host_costs", measure)
    digest = costs.source_digest("evaluate")
    assert digest != costs.source_digest()
    for each in (digest, "another", digest):
        monkeypatch.setattr(costs, "source_digest", lambda *packages, each=each: each)
        costs.host_costs.cache_clear()
        costs.host_costs("float64")
    costs.host_costs.cache_clear()
    assert measured == ["float64"] * 2
