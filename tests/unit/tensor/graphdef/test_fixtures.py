"""Graphs that TensorFlow made, against the values that it computed; `tests/fixtures/make_tensor_graphs.py` makes them.

Sums are in another order than TensorFlow's: floats may differ by two millionths of one plus the largest magnitude
(float64: by 1e-14).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from shine.formats.read.protobuf import messages
from shine.tensor.form.interpreter import interpret
from shine.tensor.graphdef import load_module
from shine.tensor.graphdef.rules import OPERATIONS
from shine.tensor.graphdef.rules.language import FUNCTIONS as LANGUAGE
from shine.tensor.graphdef.rules.variables import VARIABLES

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

FOLDER = Path(__file__).parents[3] / "fixtures" / "tensor_graphs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz") if path.stem != "random")
BOUNDS = {"float32": 2e-6, "float64": 1e-14}

WITHOUT_FIXTURES = {
    "NoOp",
    # TensorFlow no longer has them, or not on the CPU, or they are the same rule under an older name.
    *("TopK", "FusedBatchNorm", "FusedBatchNormV2", "Div", "Inv", "Mod", "TruncateMod"),
    *("Variable", "IdentityN", "PreventGradient", "Snapshot", "CheckNumerics", "PlaceholderWithDefault"),
}


def path_of(name: str) -> Path:
    """The file of a graph or of a configuration."""
    return next(path for path in (FOLDER / f"{name}.pb", FOLDER / f"{name}.pbtxt") if path.exists())


@cache
def recorded() -> dict[str, np.ndarray]:
    """The random graphs with their values."""
    with np.load(FOLDER / "random.npz") as file:
        return dict(file)


def assert_agrees(module, arrays, prefix=""):
    """The function `main` gives what TensorFlow gives."""
    main = module.function("main")
    arguments = [arrays[f"{prefix}in/{module.labels[each.name]}"] for each in main.parameters]
    results = interpret(module, "main", arguments)
    assert len(results) == sum(name.startswith(f"{prefix}out/") for name in arrays)
    for result, value in zip(main.results, results, strict=True):
        expected = arrays[f"{prefix}out/{module.labels[result.name]}"]
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
        if value.dtype.kind == "f" and value.size:
            assert np.abs(value - expected).max() <= BOUNDS[str(value.dtype)] * (1 + np.abs(expected).max())
        else:
            assert value.tolist() == expected.tolist()


def loaded(name: str):
    """A fixture with its configuration and checkpoint."""
    checkpoint = FOLDER / f"{name}.ckpt"
    has_variables = Path(f"{checkpoint}.index").exists()
    return load_module(
        path_of(name), config=path_of(f"{name}.config"), checkpoint=checkpoint if has_variables else None
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_has_the_values_that_tensorflow_has(name):
    with np.load(FOLDER / f"{name}.npz") as file:
        assert_agrees(loaded(name), dict(file))


@pytest.mark.parametrize("place", range(20))
def test_a_random_graph_has_the_values_that_tensorflow_has(place):
    arrays = recorded()
    fetches = [name.partition("/out/")[2] for name in arrays if name.startswith(f"{place}/out/")]
    assert_agrees(load_module(arrays[f"{place}/graph"].tobytes(), fetches=fetches), arrays, f"{place}/")


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("name", ["cond", "cond_of_switches"])
def test_a_condition_chooses_by_its_predicate(name, value):
    result = interpret(loaded(name), "main", [np.bool_(value), np.int32([10]), np.int32([20])])[0]
    assert result.tolist() == ([10] if value else [20])


def test_every_operation_is_in_a_fixture():
    made = messages()
    graphs = [made.GraphDef.FromString(recorded()[f"{place}/graph"].tobytes()) for place in range(20)]
    for name in NAMES:
        path = path_of(name)
        if path.suffix == ".pb":
            graphs.append(made.GraphDef.FromString(path.read_bytes()))
        else:
            graphs.append(made.text_format.Parse(path.read_text(), made.GraphDef(), allow_unknown_field=True))
    seen = {node.op for graph in graphs for node in graph.node}
    seen |= {node.op for graph in graphs for function in graph.library.function for node in function.node_def}
    own = {name for name, rule in {**OPERATIONS, **VARIABLES}.items() if LANGUAGE.get(name) is not rule}
    missing = sorted(own - seen - WITHOUT_FIXTURES)
    assert not missing, missing
