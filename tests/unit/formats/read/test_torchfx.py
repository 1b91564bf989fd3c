"""Elementwise graphs of torch: results are torch's own, in torch's number types."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shine
from shine.base.errors import GraphImportError
from shine.lang.program.interpret import interpret
from shine.lang.program.trees import tree_of

torch = pytest.importorskip("torch", reason="needs torch: pip install 'shine[torch]'")

from torch import nn  # noqa: E402 - after the skip
from torch.nn import functional as F  # noqa: E402

from shine.formats.read.torchfx import from_export, from_fx  # noqa: E402
from shine.formats.read.torchfx.operations import ALIASES, MODULES, OPERATIONS  # noqa: E402

pytestmark = pytest.mark.slow
DTYPES = ("float64", "float32", "int64", "int32", "bool")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 30.0, -30.0, np.inf, -np.inf, np.nan, 1e-30, 1e30]


def numbers(dtype: str, seed: int = 0, count: int = 200) -> Any:
    """A tensor of a type, with its awkward values."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return torch.tensor(rng.integers(0, 2, count + len(SPECIAL)).astype(bool))
    if dtype.startswith("int"):
        return torch.tensor(rng.integers(-20, 20, count + len(SPECIAL)).astype(dtype))
    values = np.concatenate([rng.normal(0, 3, count), rng.permutation(SPECIAL)])
    return torch.tensor(values.astype(dtype))


def traced(function: Any) -> Any:
    return torch.fx.symbolic_trace(function)


def arrays(result: Any) -> list[Any]:
    parts = result if isinstance(result, tuple | list) else [result]
    return [part.detach().numpy() for part in parts]


def assert_equal(ours: Any, theirs: Any, ulps: float = 0) -> None:
    """The same type and numbers; floats may differ by `ulps` units in the last place."""
    assert ours.dtype == theirs.dtype
    ours, theirs = np.broadcast_arrays(ours, theirs)
    if theirs.dtype.kind != "f" or not ulps:
        np.testing.assert_array_equal(ours, theirs)
        return
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(ours[~finite], theirs[~finite])
    apart = np.abs(ours[finite] - theirs[finite])
    allowed = ulps * np.spacing(np.maximum(np.abs(theirs[finite]), np.finfo(theirs.dtype).tiny))
    worst = np.argmax(apart / allowed) if len(apart) else 0
    assert (apart <= allowed).all(), (ours[finite][worst], theirs[finite][worst])


def check(function: Any, *tensors: Any, ulps: float = 0) -> None:
    """The program of a function has torch's results."""
    graph = traced(function)
    names = [node.target for node in graph.graph.nodes if node.op == "placeholder"]
    types = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in zip(names, tensors, strict=True)}
    ours = interpret(from_fx(graph, types), [tensor.numpy() for tensor in tensors])
    for one, other in zip(ours, arrays(function(*tensors)), strict=True):
        assert_equal(one, other, ulps)


FLOATS: dict[str, Any] = {
    "sqrt": (torch.sqrt, 1), "exp": (torch.exp, 2), "log": (torch.log, 2), "sin": (torch.sin, 2), "cos": (torch.cos, 2),
    "tan": (torch.tan, 3), "asin": (torch.asin, 2), "acos": (torch.acos, 2), "atan": (torch.atan, 2),
    "sinh": (torch.sinh, 2), "cosh": (torch.cosh, 2), "tanh": (torch.tanh, 2), "sigmoid": (torch.sigmoid, 4),
    "expm1": (torch.expm1, 4), "log1p": (torch.log1p, 4), "log2": (torch.log2, 2), "log10": (torch.log10, 2),
    "rsqrt": (torch.rsqrt, 2), "reciprocal": (torch.reciprocal, 0), "exp2": (torch.exp2, 2), "silu": (F.silu, 4),
    "softsign": (F.softsign, 2), "hardsigmoid": (F.hardsigmoid, 2), "hardswish": (F.hardswish, 2),
    "deg2rad": (torch.deg2rad, 1), "rad2deg": (torch.rad2deg, 1), "logsigmoid": (F.logsigmoid, 4),
    "relu6": (F.relu6, 0), "neg": (torch.neg, 0), "abs": (torch.abs, 0), "relu": (torch.relu, 0),
    "sign": (torch.sign, 0), "floor": (torch.floor, 0), "ceil": (torch.ceil, 0), "trunc": (torch.trunc, 0),
    "round": (torch.round, 0), "square": (torch.square, 1), "isnan": (torch.isnan, 0), "isinf": (torch.isinf, 0),
    "isfinite": (torch.isfinite, 0), "logical_not": (torch.logical_not, 0),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), 1), "elu": (lambda x: F.elu(x, 1.5, False), 4),
    "celu": (lambda x: F.celu(x, 0.7), 5), "selu": (F.selu, 6), "softplus": (lambda x: F.softplus(x, 2.0, 10.0), 5),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 2.0), 0), "hardshrink": (lambda x: F.hardshrink(x, 0.7), 0),
    "softshrink": (lambda x: F.softshrink(x, 0.7), 0), "threshold": (lambda x: F.threshold(x, 0.1, 20.0), 0),
    "clamp": (lambda x: torch.clamp(x, -1.5, 2), 0), "clamp_min": (lambda x: x.clamp_min(0.25), 0),
    "clamp_max": (lambda x: x.clamp(max=0.25), 0), "dropout": (lambda x: F.dropout(x, 0.5, training=False), 0),
    "zeros": (lambda x: torch.where(x > 0, x, torch.zeros_like(x)), 0), "ones": (lambda x: x + torch.ones_like(x), 0),
    "full": (lambda x: x * torch.full_like(x, 2.5), 1), "masked_fill": (lambda x: x.masked_fill(x < 0, 7.0), 0),
    "power_half": (lambda x: x**0.5, 2), "power_minus_half": (lambda x: x**-0.5, 2), "power_one": (lambda x: x**1, 0),
    "power_two": (lambda x: x**2, 0), "power_three": (lambda x: x**3, 1), "power_minus_one": (lambda x: x**-1, 0),
    "power_minus_two": (lambda x: x**-2, 2), "power_other": (lambda x: x.abs() ** 1.7, 2),
    "base": (lambda x: 3.5**x, 2),
    "positive": (lambda x: +x, 0), "clone": (lambda x: x.clone().contiguous().detach(), 0),
    "double": (lambda x: x.double(), 0), "float": (lambda x: x.float(), 0), "bool": (lambda x: x.bool(), 0),
    "to": (lambda x: x.to(torch.float64), 0), "type_as": (lambda x: x.double().type_as(x), 0),
    "scaled": (lambda x: torch.add(x, 1.5, alpha=3) - torch.sub(2, x, alpha=0.5) * torch.rsub(x, 4), 8),
}  # fmt: skip
"""A function of one float tensor by name, and how many units in the last place it may differ by."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FLOATS)
def test_a_function_of_floats_is_that_of_torch(name, dtype):
    function, ulps = FLOATS[name]
    check(lambda x: function(x), numbers(dtype), ulps=ulps)


def test_all_functions_at_once_are_compiled_to_what_they_say():
    x = numbers("float32")
    program = from_fx(traced(lambda x: tuple(function(x) for function, _ in FLOATS.values())))
    for ours, (function, ulps) in zip(shine.jit(program)(x.numpy()), FLOATS.values(), strict=True):
        assert_equal(ours, function(x).numpy(), ulps)


def test_functions_that_cancel_are_as_exact_as_their_largest_part():
    x = numbers("float64")[:200]
    for function, scale in [
        (lambda x: F.gelu(x, approximate="tanh"), x.abs()),
        (F.mish, x.abs() + 1),
        (F.tanhshrink, x.abs()),
    ]:
        (ours,) = interpret(from_fx(traced(function), "float64"), [x.numpy()])
        assert (np.abs(ours - function(x).numpy()) <= 4e-16 * scale.numpy()).all()


PAIRS: dict[str, Any] = {
    "add": (lambda x, y: x + y, 0), "sub": (lambda x, y: x - y, 0), "mul": (lambda x, y: x * y, 0),
    "div": (lambda x, y: x / y, 0), "maximum": (torch.maximum, 0), "minimum": (torch.minimum, 0),
    "max": (lambda x, y: torch.max(x, y), 0), "fmax": (torch.fmax, 0), "fmin": (torch.fmin, 0),
    "pow": (lambda x, y: x.abs() ** y, 2), "fmod": (torch.fmod, 0), "remainder": (lambda x, y: x % y, 0),
    "floor_divide": (lambda x, y: x // y, 0), "hypot": (torch.hypot, 3), "xlogy": (torch.xlogy, 3),
    "lt": (lambda x, y: x < y, 0), "le": (lambda x, y: x <= y, 0), "gt": (lambda x, y: x > y, 0),
    "ge": (lambda x, y: x >= y, 0), "eq": (lambda x, y: x == y, 0), "ne": (torch.not_equal, 0),
    "logical_and": (torch.logical_and, 0), "logical_or": (torch.logical_or, 0), "logical_xor": (torch.logical_xor, 0),
    "where": (lambda x, y: torch.where(x > y, x, y), 0), "where_method": (lambda x, y: x.where(y > 0, y), 0),
    "masks": (lambda x, y: torch.where(((x > 0) & ~(y > 0)) | ((x < -1) ^ (y < -1)), x, 2.0), 0),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), 8), "addcmul": (lambda x, y: torch.addcmul(x, x, y, value=0.5), 40),
    "modes": (lambda x, y: (torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor")), 0),
}  # fmt: skip
"""A function of two tensors by name, and how many units in the last place it may differ by."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_function_of_two_floats_is_that_of_torch(name, dtype):
    function, ulps = PAIRS[name]
    x, y = numbers(dtype), numbers(dtype, seed=1)
    if name in ("lerp", "addcmul"):
        x, y = x[:200], y[:200]
        scale = (x.abs() + (x * y).abs() + y.abs()).numpy()
        (ours,) = interpret(from_fx(traced(function), dtype), [x.numpy(), y.numpy()])
        assert (np.abs(ours - function(x, y).numpy()) <= 4 * np.finfo(dtype).eps * scale).all()
        return
    check(lambda x, y: function(x, y), x, y, ulps=ulps)


INTEGERS: dict[str, Any] = {
    "arithmetic": lambda x, y: (x + y, x - y, x * y, -x, x.abs(), torch.sign(x), torch.relu(x), x.square()),
    "division": lambda x, y: (x / (y + 100), x // (y * 2 + 1), x % (y * 2 + 1), torch.fmod(x, y * 2 + 1)),
    "truncated": lambda x, y: torch.div(x, y * 2 + 1, rounding_mode="trunc"),
    "comparisons": lambda x, y: (x < y, x <= y, x == y, x != y, torch.logical_and(x, y), torch.logical_not(x)),
    "choice": lambda x, y: (torch.where(x > y, x, y), torch.maximum(x, y), x.clamp(-3, 4), x.clamp(min=0.5)),
    "roots": lambda x, y: (torch.sqrt(x.abs()), torch.sigmoid(x), x.reciprocal(), x**2, x**0.5, 2 ** (x % 8)),
    "rounding": lambda x, y: (x.floor(), x.round(), x.trunc(), torch.isnan(x), torch.isfinite(x)),
    "mixed": lambda x, y: (x + 1.5, x * True, x + 2, 7 - x, x > 0.5, (x > 0) + x, (x > 0) * 2.5, ~x),
    "conversions": lambda x, y: (x.double(), x.float(), x.int(), x.long(), x.bool(), x.type_as(y)),
}  # fmt: skip


@pytest.mark.parametrize("other", ["int64", "int32"])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("name", INTEGERS)
def test_whole_numbers_are_exactly_those_of_torch(name, dtype, other):
    check(INTEGERS[name], numbers(dtype), numbers(other, seed=1), ulps=2)


def test_truth_values_are_added_as_torch_adds_them():
    check(
        lambda x, y: (x + y, x * y, x | y, x & y, x ^ y, ~x, x == y, x + 1, x * 0.5, x < y, torch.where(x, y, 3)),
        numbers("bool"),
        numbers("bool", seed=1),
    )


def test_whole_numbers_overflow_as_in_torch():
    x = torch.tensor([2**31 - 1, -(2**31), 7], dtype=torch.int32)
    check(lambda x: (x + 1, x * 3, -x, x * x), x)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(DTYPES), min_size=2, max_size=2),
    st.lists(st.booleans(), min_size=2, max_size=2),
    st.sampled_from([None, True, 3, 2.5]),
)
def test_numbers_are_promoted_as_torch_promotes_them(dtypes, scalars, number):
    """Arrays, tensors without dimensions and Python's numbers of any types; the oracle is torch."""
    tensors = [
        numbers(dtype, seed)[: 1 if scalar else 9]
        for seed, (dtype, scalar) in enumerate(zip(dtypes, scalars, strict=True))
    ]
    tensors = [tensor[0] if scalar else tensor for tensor, scalar in zip(tensors, scalars, strict=True)]

    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("y", tensors[1])

        def forward(self, x: Any) -> Any:
            return (x * self.y + number) * self.y if number is not None else torch.where(x > 0, self.y, x) + self.y

    module = Sums()
    if scalars[0]:  # torch.fx says nothing of dimensions
        program = from_export(torch.export.export(module, (tensors[0],)))
    else:
        program = from_fx(traced(module), dtypes[0])
    (ours,) = interpret(program, [tensors[0].numpy()])
    assert_equal(ours, module(tensors[0]).numpy(), ulps=2)


class Network(nn.Module):
    """Elementwise layers of all kinds, with parameters, a buffer and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.weights = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))
        self.register_buffer("shift", torch.arange(3))
        self.layers = nn.Sequential(nn.ReLU(), nn.Identity(), nn.Tanh(), nn.Softplus(2.0, 15.0), nn.ELU(0.5))
        self.last = nn.ModuleList([nn.Hardtanh(-2, 3), nn.LeakyReLU(0.1), nn.SiLU(), nn.GELU(approximate="tanh")])
        self.off = nn.Dropout(0.3)

    def forward(self, x: Any, gain: float = 2.0) -> Any:
        y = self.layers(x * self.weights + self.shift) * self.scale
        for layer in self.last:
            y = layer(self.off(y) - gain) + torch.tensor(0.25)
        return {"y": y, "parts": [y > 0, (y * 10).to(torch.int32), x]}


def test_a_module_is_a_program_with_its_parameters():
    module, x = Network().eval(), torch.randn(50, 3)
    program = from_fx(traced(module))
    assert [(each.label, each.dtype) for each in program.arguments] == [("x", "float32"), ("gain", "float32")]
    assert [(each.label, each.dtype) for each in program.outputs] == [
        ("y", "float32"), ("parts_0", "bool"), ("parts_1", "int32"), ("parts_2", "float32"),
    ]  # fmt: skip
    expected = module(x)
    for ours, theirs in zip(interpret(program, [x.numpy()]), [expected["y"], *expected["parts"]], strict=True):
        if theirs.dtype.is_floating_point:
            np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=2e-5, atol=2e-6)
        else:
            assert np.mean(ours != theirs.numpy()) < 0.01  # a rounding more may cross a threshold
    np.testing.assert_allclose(shine.jit(program)(x.numpy())[0], expected["y"].detach(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.filterwarnings("ignore")  # torch's own, about its future changes
def test_an_exported_program_is_the_same_program(decomposed):
    module, x = Network().eval(), torch.randn(50, 3)
    exported = torch.export.export(module, (x,))
    program = from_export(exported.run_decompositions() if decomposed else exported)
    assert [(each.label, each.dtype, each.shape) for each in program.arguments] == [("x", "float32", (50, 3))]
    (ours, *_), expected = interpret(program, [x.numpy()]), module(x)["y"].detach().numpy()
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-6)


def test_a_graph_with_numbers_only_is_a_formula():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

        def forward(self, a: Any, b: Any) -> Any:
            return torch.sqrt(a * a + b * b) * self.slope

    tree = tree_of(from_fx(traced(Model()), "float64"))
    assert tree.parameters == ("a", "b")
    assert str(tree) == "sqrt(a*a + b*b)*0.5"


def test_a_chain_deeper_than_the_stack_of_python_is_imported():
    graph = torch.fx.Graph()
    value = graph.placeholder("x")
    for _ in range(2_000):
        value = graph.call_function(torch.add, (value, 1))
    graph.output(value)
    program = from_fx(torch.fx.GraphModule(nn.Module(), graph), "int64")
    assert interpret(program, [np.array([5])])[0].tolist() == [2_005]


def test_shape_propagation_tells_the_types():
    from torch.fx.passes.shape_prop import ShapeProp

    graph = traced(lambda x, y: x * y)
    ShapeProp(graph).propagate(torch.ones(2, dtype=torch.int32), torch.ones((), dtype=torch.float64))
    program = from_fx(graph)
    assert [(each.dtype, each.shape) for each in program.arguments] == [("int32", (2,)), ("float64", ())]
    assert program.outputs[0].dtype == "float64"


def own_function(x: Any) -> Any:
    return x


torch.fx.wrap("own_function")


def twice(x: Any) -> Any:
    y = torch.exp(x)
    y.add_(1)
    return y * 2


REFUSED: dict[str, tuple[Any, str]] = {
    "operation": (lambda x: torch.cumsum(x, 0), r"node 'cumsum' \(torch.cumsum\): the operation is not supported"),
    "method": (lambda x: x.sum() + 1, r"node 'sum_1' \(call_method sum\): the operation is not supported; supported"),
    "module": (nn.Sequential(nn.Linear(2, 2)), r"node '_0' \(module 0, a Linear\): the module is not supported"),
    "gelu": (nn.Sequential(nn.GELU()), "gelu needs the error function, which the language lacks; approximate='tanh'"),
    "own function": (lambda x: own_function(x) + 1, "node 'own_function' .*: the operation is not supported"),
    "dropout": (nn.Sequential(nn.Dropout(0.5)), r"dropout is random while training; call eval\(\) on the module first"),
    "half": (lambda x: x.to(torch.float16), "numbers of type torch.float16 are not supported; float64, float32, int64"),
    "reduction": (lambda x: torch.max(x, 0)[0], "only max of two tensors is elementwise"),
    "keyword": (lambda x: torch.add(x, 1, out=None), "its arguments are not supported: got an unexpected keyword"),
    "complex": (lambda x: x + 1j, "argument '1j' is neither a tensor nor a number"),
    "in place": (twice, r"node 'add_' \(call_method add_\): it changes a value in place that others may read"),
    "truth": (lambda x: (x > 0) - (x < 0), "torch has no difference of truth values"),
    "device": (lambda x: x.to("cuda") + 1, "'cuda' is neither a number type nor the CPU"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_operation_is_named_with_its_node(name):
    function, message = REFUSED[name]
    with pytest.raises(GraphImportError, match=message):
        from_fx(traced(function))


def test_an_in_place_operation_is_supported_if_no_other_node_reads_its_input():
    x = torch.randn(9)
    program = from_fx(traced(lambda x: torch.exp(x).add_(1).mul_(2)))
    np.testing.assert_allclose(interpret(program, [x.numpy()])[0], ((torch.exp(x) + 1) * 2).numpy(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_buffer_that_is_written_is_refused():
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return x + self.count

    with pytest.raises(GraphImportError, match="buffer_mutation; a program returns values and changes nothing"):
        from_export(torch.export.export(Counter(), (torch.ones(2),)).run_decompositions())


def test_an_object_that_is_not_a_graph_is_a_type_error():
    with pytest.raises(TypeError, match=r"a torch\.fx\.GraphModule is needed, not ReLU"):
        from_fx(nn.ReLU())
    with pytest.raises(TypeError, match=r"a torch\.export\.ExportedProgram is needed, not ReLU"):
        from_export(nn.ReLU())


def test_torch_is_imported_only_when_it_is_needed():
    code = (
        "import sys, shine.formats.read.torchfx as t\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "try:\n    t.from_fx(1)\nexcept t.GraphImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "this needs torch: pip install 'shine[torch]'\n"


def test_every_name_leads_to_a_rule():
    assert set(ALIASES.values()) <= set(OPERATIONS)
    assert {operation for operation, _ in MODULES.values()} <= set(OPERATIONS)
    assert not set(ALIASES) & set(OPERATIONS)
