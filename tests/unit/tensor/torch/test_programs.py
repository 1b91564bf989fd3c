"""Programs of elementwise modules of torch: results are torch's own, in torch's number types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shine
from shine.base.errors import GraphImportError
from shine.lang.program.interpret import interpret
from shine.lang.program.trees import tree_of

torch = pytest.importorskip("torch", reason="needs torch: pip install 'shine-gp[torch]'")

from torch import nn  # noqa: E402 - after the skip
from torch.nn import functional as F  # noqa: E402

from shine.tensor.torch import program_from_exported  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # torch's own, about its future changes
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


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Any) -> Any:
        return self.function(*tensors)


def program_of(function: Any, *tensors: Any) -> Any:
    """The program of a function or module."""
    module = function if isinstance(function, nn.Module) else Calls(function)
    return program_from_exported(torch.export.export(module, tensors))


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
    ours = interpret(program_of(function, *tensors), [tensor.numpy() for tensor in tensors])
    for one, other in zip(ours, arrays(function(*tensors)), strict=True):
        assert_equal(one, other, ulps)


def check_all(functions: dict[str, tuple[Any, float]], *tensors: Any) -> None:
    """As `check`, for functions with a limit each, in one program."""
    program = program_of(lambda *x: tuple(function(*x) for function, _ in functions.values()), *tensors)
    results = interpret(program, [tensor.numpy() for tensor in tensors])
    for ours, (function, ulps) in zip(results, functions.values(), strict=True):
        assert_equal(ours, function(*tensors).numpy(), ulps)


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
def test_functions_of_floats_are_those_of_torch(dtype):
    check_all(FLOATS, numbers(dtype))


def test_all_functions_at_once_are_compiled_to_what_they_say():
    x = numbers("float32")
    program = program_of(lambda x: tuple(function(x) for function, _ in FLOATS.values()), x)
    for ours, (function, ulps) in zip(shine.jit(program)(x.numpy()), FLOATS.values(), strict=True):
        assert_equal(ours, function(x).numpy(), ulps)


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
    "truncated": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), 0),
    "floored": (lambda x, y: torch.div(x, y, rounding_mode="floor"), 0),
}  # fmt: skip
"""A function of two tensors by name, and how many units in the last place it may differ by."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_two_floats_are_those_of_torch(dtype):
    check_all(PAIRS, numbers(dtype), numbers(dtype, seed=1))


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
def test_whole_numbers_are_exactly_those_of_torch(dtype, other):
    def every(x: Any, y: Any) -> Any:
        found = [function(x, y) for function in INTEGERS.values()]
        return tuple(each for part in found for each in (part if isinstance(part, tuple) else (part,)))

    check(every, numbers(dtype), numbers(other, seed=1), ulps=4)


def test_truth_values_are_added_as_torch_adds_them():
    check(
        lambda x, y: (x + y, x * y, x | y, x & y, x ^ y, ~x, x == y, x + 1, x * 0.5, x < y, torch.where(x, y, 3)),
        numbers("bool"),
        numbers("bool", seed=1),
    )


def test_whole_numbers_overflow_as_in_torch():
    x = torch.tensor([2**31 - 1, -(2**31), 7], dtype=torch.int32)
    check(lambda x: (x + 1, x * 3, -x, x * x), x)


@pytest.mark.parametrize("number", [None, 3, 2.5])
@pytest.mark.parametrize("scalars", [(False, False), (True, False)])
def test_numbers_are_promoted_as_torch_promotes_them(scalars, number):
    """Arrays, tensors without dimensions and Python's numbers of any types; the oracle is torch."""
    dtypes = ("float64", "int64", "bool", "float32", "int32")
    for place, first in enumerate(dtypes):
        second = dtypes[(place + 2) % len(dtypes)]
        x, held = (
            numbers(dtype, seed)[0] if is_scalar else numbers(dtype, seed)[:9]
            for seed, (dtype, is_scalar) in enumerate(zip((first, second), scalars, strict=True))
        )

        class Sums(nn.Module):
            def __init__(self, held: Any) -> None:
                super().__init__()
                self.register_buffer("y", held)

            def forward(self, x: Any) -> Any:
                return (x * self.y + number) * self.y if number is not None else torch.where(x > 0, self.y, x) + self.y

        check(Sums(held), x, ulps=2)


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
    program = program_of(module, x)
    assert [(each.label, each.dtype, each.shape) for each in program.arguments] == [("x", "float32", (50, 3))]
    assert [each.dtype for each in program.outputs] == ["float32", "bool", "int32", "float32"]
    assert "weights" in [each.label for each in program.parameters]
    expected = module(x)
    for ours, theirs in zip(interpret(program, [x.numpy()]), [expected["y"], *expected["parts"]], strict=True):
        if theirs.dtype.is_floating_point:
            np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=2e-5, atol=2e-6)
        else:
            assert np.mean(ours != theirs.numpy()) < 0.01  # a rounding more may cross a threshold
    np.testing.assert_allclose(shine.jit(program)(x.numpy())[0], expected["y"].detach(), rtol=2e-5, atol=2e-6)


def test_a_traced_graph_is_exported_as_other_modules_are():
    graph = torch.fx.symbolic_trace(lambda x, y: torch.relu(x) * y)
    tensors = numbers("float64"), numbers("int32", seed=1)
    (ours,) = interpret(program_of(graph, *tensors), [tensor.numpy() for tensor in tensors])
    assert_equal(ours, graph(*tensors).numpy())


def test_a_graph_with_numbers_only_is_a_formula():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

        def forward(self, a: Any, b: Any) -> Any:
            return torch.sqrt(a * a + b * b) * self.slope

    points = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    tree = tree_of(program_of(Model(), *points))
    assert tree.parameters == ("a", "b")
    assert str(tree) == "sqrt(a*a + b*b)*0.5"


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 7)])
def test_a_call_may_have_other_shapes_than_the_export(shape):
    program, x = program_of(lambda x: torch.where(x > 0, x * 2, -x), torch.ones(3)), np.ones(shape, "float32")
    (ours,) = interpret(program, [x])
    assert ours.tolist() == (2 * x).tolist()


REFUSED: dict[str, tuple[Any, str]] = {
    "sum": (lambda x: torch.exp(x) * x.sum(), "output 'mul' depends on reduce_sum of <2 x f32>; only elementwise oper"),
    "product": (nn.Linear(2, 2), "depends on (dot|transpose) of .*; only elementwise operations are part of a formula"),
    "unknown": (torch.special.bessel_j0, "node 'special_bessel_j0' .*: the operation is not supported"),
    "half": (
        lambda x: x.to(torch.int8) * x.to(torch.int8),
        "depends on elements i8; formulas have f32",
    ),
    "repetition": (lambda x: x.expand(3, 2), r"output 'expand' has the shape \[3, 2\] by repetition; only elementwise"),
}
"""A function of two numbers and the message, by what is wrong."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_elementwise_is_refused_with_its_output(name):
    function, message = REFUSED[name]
    with pytest.raises(GraphImportError, match=message):
        program_of(function, torch.ones(2))


def test_an_object_that_is_not_exported_is_refused():
    with pytest.raises(GraphImportError, match=r"a program of torch\.export\.export.* is needed, and not ReLU"):
        program_from_exported(nn.ReLU())
