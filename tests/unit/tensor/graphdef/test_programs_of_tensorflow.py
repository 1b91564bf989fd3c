"""Graphs that TensorFlow made, against the values that it computed; `tests/fixtures/make_graphs.py` makes them.

Numbers may differ by two units in the last place for each node that rounds. TensorFlow's vectorized functions are up
to 7 units off themselves: for these the fixtures state the error, and ours must be within two units of the true values,
and as near to TensorFlow's as that allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.numbering import number_at, position_of
from helpers.equality import same_bits, ulps
from helpers.markers import mostly_slow
from numpy.typing import NDArray

import shine
from shine.formats.read.protobuf import messages
from shine.lang.program.interpret import interpret
from shine.lang.program.program import Program
from shine.tensor.graphdef.rules.language import ELEMENTWISE

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

FOLDER = Path(__file__).parents[3] / "fixtures" / "graphs"
PATHS = [*sorted(FOLDER.glob("*.pb")), *sorted(FOLDER.glob("*.pbtxt"))]
FLUSHED = [path for path in PATHS if path.stem.startswith("subnormals")]
EXACT = [path for path in PATHS if path not in FLUSHED]

TIERS = ("reference", "kernel")

ULP_A_NODE = {
    ("kernel", "float32"): 2,
    ("kernel", "float64"): 2,
    ("reference", "float32"): 5,
    ("reference", "float64"): 2,
}
"""The reference has NumPy's functions, which are up to 3 units off in float32; composites such as log1p add to that."""

LESS_EXACT = {"Selu": 8, "Asinh": 8, "Acosh": 8, "Atanh": 8}
"""Limits of further operations that are read; each is several primitives of Shine."""

PROMISED = {
    *("Placeholder", "PlaceholderWithDefault", "Const", "Identity", "IdentityN", "StopGradient", "NoOp"),
    *("Add", "AddV2", "AddN", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "DivNoNan", "Neg", "Abs", "Sign"),
    *("Square", "SquaredDifference", "Sqrt", "Rsqrt", "Reciprocal", "Pow", "Exp", "Expm1", "Log", "Log1p"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh"),
    *("Sigmoid", "Softplus", "Relu", "Relu6", "Elu", "LeakyRelu", "Maximum", "Minimum", "Floor", "Ceil", "Round"),
    *("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalNot"),
    *("Select", "SelectV2", "Cast", "PartitionedCall", "StatefulPartitionedCall"),
}
"""Operations that the frontend promises to read."""

Array = NDArray[Any]


@dataclass
class Case:
    """Arguments of a graph by label; for each output, TensorFlow's value and its excess over the true one."""

    arguments: dict[str, Array]
    expected: dict[str, Array]
    off: dict[str, Array]


@cache
def recorded(stem: str) -> tuple[list[Case], dict[str, int]]:
    """The cases of a graph, and how many nodes that round each output depends on."""
    with np.load(FOLDER / f"{stem}.npz") as file:
        arrays = dict(file)
    outputs = arrays.pop("outputs").tolist()
    nodes = dict(zip(outputs, arrays.pop("operations").tolist(), strict=True))
    count = 1 + max(int(name.partition("/")[0]) for name in arrays)
    cases = [Case({}, {}, {}) for _ in range(count)]
    for name, values in arrays.items():
        position, kind, *label = name.split("/", 2)
        rows = {label[0]: values} if label else dict(zip(outputs, values, strict=True))
        case = cases[int(position)]
        {"in": case.arguments, "out": case.expected, "off": case.off}[kind].update(rows)
    return cases, nodes


def assert_near(values: Any, expected: Array, off: Array | None, limit: float) -> None:
    """Equal for integers and truth; within a limit in ulp for floats, signs of zeros, NaN and infinities included."""
    values = np.asarray(values, dtype=expected.dtype)
    assert values.shape == expected.shape
    if expected.dtype.kind != "f":
        assert values.tolist() == expected.tolist()
        return
    if off is not None:
        exact = number_at(position_of(expected) - off, expected.dtype)
        wrong = ulps(values, exact) > limit
        assert not wrong.any(), (values[wrong], exact[wrong])
        limit = limit + ulps(expected, exact)
    wrong = (ulps(values, expected) > limit) | (zero_sign(values) != zero_sign(expected))
    assert not wrong.any(), (values[wrong], expected[wrong])


def zero_sign(values: Array) -> Array:
    """The sign of zeros, and 0 for everything else."""
    return np.where(values == 0, np.copysign(1.0, values), 0.0)


@cache
def loaded(path: Path) -> Program:
    """A fixture, read."""
    return shine.load_graph(path, outputs=list(recorded(path.stem)[1]))


def results_of(program: Program, tier: str, arguments: dict[str, Array]) -> tuple[Any, ...]:
    """The outputs, by the reference or compiled."""
    if tier == "reference":
        return interpret(program, arguments)
    made = compiled(program)(**arguments)
    return made if isinstance(made, tuple) else (made,)


compiled = cache(shine.jit)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("path", mostly_slow(EXACT, fast=EXACT[::8]), ids=lambda path: path.name)
def test_a_graph_has_the_values_that_tensorflow_has(path, tier):
    cases, nodes = recorded(path.stem)
    program = loaded(path)
    for case in cases:
        for output, values in zip(program.outputs, results_of(program, tier, case.arguments), strict=True):
            expected = case.expected[output.label]
            assert output.dtype == expected.dtype
            limit = ULP_A_NODE.get((tier, output.dtype), 0) * nodes[output.label]
            limit = LESS_EXACT.get(output.label, limit)
            assert_near(values, expected, case.off.get(output.label), limit)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("path", FLUSHED, ids=lambda path: path.name)
def test_tensorflow_takes_subnormal_numbers_for_zero(path, tier):
    # TensorFlow tells the processor to do so. Normal results depend on it only through subnormal operands.
    (case,), _ = recorded(path.stem)
    program = loaded(path)
    arguments = {label: flushed(values) for label, values in case.arguments.items()}
    for output, values in zip(program.outputs, results_of(program, tier, arguments), strict=True):
        assert same_bits(flushed(np.asarray(values)), case.expected[output.label]).all(), output.label
    kept = results_of(program, tier, case.arguments)[[output.label for output in program.outputs].index("Mul")]
    with np.errstate(all="ignore"):
        assert same_bits(np.asarray(kept), case.arguments["x"] * case.arguments["y"]).all()


def flushed(values: Array) -> Array:
    """Zeros, of the same sign, for subnormal numbers."""
    with np.errstate(all="ignore"):
        return np.where(np.abs(values) < np.finfo(values.dtype).tiny, np.copysign(0, values), values).astype(
            values.dtype
        )


def nodes_of(path: Path) -> list[Any]:
    """All nodes of a file, with those of its functions."""
    made = messages()
    graph = made.GraphDef()
    if path.suffix == ".pb":
        graph.ParseFromString(path.read_bytes())
    else:
        made.text_format.Parse(path.read_text(encoding="utf-8"), graph, allow_unknown_field=True)
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def test_every_operation_is_in_a_fixture():
    assert len(PATHS) >= 40
    seen = {node.op for path in PATHS for node in nodes_of(path)}
    assert seen >= PROMISED
    assert seen >= ELEMENTWISE


def test_every_type_is_cast_to_every_type():
    casts = {
        (node.attr["SrcT"].type, node.attr["DstT"].type)
        for path in PATHS
        for node in nodes_of(path)
        if node.op == "Cast"
    }
    assert len({source for source, _ in casts}) == 5 and len(casts) == 25
