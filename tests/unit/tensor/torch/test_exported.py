"""Programs of torch.export beside torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shine.base.errors import GraphImportError
from shine.tensor.form.interpreter import interpret
from shine.tensor.torch import from_exported

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

F = torch.nn.functional


def drawn(*shape: int, seed: int = 0) -> Any:
    return torch.tensor(np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype("f4"))


def exported(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    network = function
    if not isinstance(function, torch.nn.Module):

        class Network(torch.nn.Module):
            def forward(self, *x: Any) -> Any:
                return function(*x)

        network = Network()
    return torch.export.export(network.eval(), inputs)


def check(function: Callable[..., Any], *inputs: Any) -> None:
    """Compare all results with those of torch."""
    program = exported(function, inputs)
    module = from_exported(program)
    with torch.no_grad():
        expected = program.module()(*inputs)
    expected = torch.utils._pytree.tree_leaves(expected)
    found = interpret(module, "main", [x.detach().numpy() for x in inputs])
    for ours, theirs in zip(found, expected, strict=True):
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-5, atol=2e-6)


X, Y = drawn(2, 3, 4), drawn(3, 1)
WHOLE = torch.arange(-3, 3).reshape(2, 3)
IMAGE = drawn(2, 4, 7, 6)
INF = float("inf")

UNARY = (
    "neg", "abs", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "floor", "ceil", "round", "trunc", "sign",
    "sigmoid", "reciprocal", "erf", "expm1", "square", "isnan", "isinf", "logical_not", "relu", "asin", "acos",
)  # fmt: skip
POSITIVE = ("sqrt", "rsqrt", "log", "log1p", "log2", "log10")
ACTIVATIONS = (
    "gelu", "elu", "leaky_relu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh", "softplus", "selu", "relu6",
    "softsign", "logsigmoid", "celu", "tanhshrink",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod",
    "floor_divide", "logical_and", "logical_or", "logical_xor",
)  # fmt: skip


def several(home: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    """One program of many functions: exporting takes a second."""
    return lambda *x: tuple(getattr(home, name)(*x) for name in names)


def assigned(x: Any) -> tuple[Any, ...]:
    """Slices that are assigned to; torch exports them as functions."""
    y = x.clone()
    y[:, 1:] = 7
    y[..., 0] = x[..., 1]
    y[:, ::2, 1:-1:2] = x[:, ::2, :3, :1]
    y[1, -1] = 0
    y[:, 0] += 1
    y[:, :, 3:99] = 5.0
    whole = torch.zeros_like(x).long()
    whole[:] = 3 * x
    made = torch.empty(3, 6)
    made.copy_(x[0, 0, 0])
    return y, whole, made


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "unary": (several(torch, UNARY), (X,)),
    "positive": (several(torch, POSITIVE), (X.abs() + 0.5,)),
    "activations": (several(F, ACTIVATIONS), (X,)),
    "binary": (several(torch, BINARY), (X, Y)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), (X,)),
    "alpha": (lambda x, y: torch.add(x, y, alpha=2.5) - torch.sub(y, x, alpha=0.5), (X, Y)),
    "rounded quotients": (
        lambda x, y: (torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc")),
        (WHOLE, torch.tensor([2, -2, 3])),
    ),
    "remainders": (
        lambda x, n: (torch.fmod(x, 1), torch.fmod(n, 2), torch.fmod(n, -2)),
        (torch.tensor([-1e-8, 1e-8, -0.3, 5.5, INF, torch.nan]), WHOLE),
    ),
    "mixed elements": (lambda x, n: x[..., :3] + n[0] * 2 - 1.5, (X, WHOLE)),
    "numbers": (lambda x: (2 - x) / 3 + 1 / x**2 + 2**x, (X.abs() + 0.5,)),
    "powers": (lambda x, y: x**y, (X.abs() + 0.5, Y)),
    "integer results": (lambda n: (n * 2, n / 2, n // 2, n % 2, n > 0.5, n == 1), (WHOLE,)),
    "clamp": (lambda x: (x.clamp(-0.5, 0.3), x.clamp(min=0), x.clamp(max=X.mean())), (X,)),
    "where": (lambda x, y: torch.where(x > 0, x, y), (X, Y)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 7.0), (X,)),
    "bits of truth": (lambda x, y: ((x > 0) & (y > 0)) | ~(x > 0.5) ^ (y < 0), (X, Y)),
    "prelu": (torch.nn.PReLU(4), (IMAGE,)),
    "view": (lambda x: (x.view(6, 4), x.reshape(-1), x.unsqueeze(1), x[:, :1].squeeze(1), x.flatten(1)), (X,)),
    "permute": (lambda x: (x.permute(2, 0, 1), x.transpose(0, 2), x[0].t(), x.mT), (X,)),
    "expand": (lambda y: y.expand(2, 3, 5), (Y,)),
    "slices": (lambda x: (x[1], x[:, 1:], x[..., ::2], x[:, -1], x[:, 5:]), (X,)),
    "split": (lambda x: (*x.split(2, 2), *x.split([1, 3], 2), *x.chunk(2, 2), *x.unbind(1)), (X,)),
    "cat": (lambda x, y: (torch.cat([x, x * 2], 1), torch.stack([x, x], -1)), (X, Y)),
    "pad": (lambda x: (F.pad(x, (1, 2), value=3.0), F.pad(x, (0, -1, 1, 0))), (X,)),
    "flip": (lambda x: (x.flip(0, 2), x.roll(1, 2), x.repeat(2, 1, 1, 2)), (X,)),
    "embedding": (torch.nn.Embedding(5, 3), (torch.tensor([[0, 4], [2, 2]]),)),
    "index": (lambda x, n: (x[:, n], x.index_select(2, n[0]), x[n[0]]), (X, torch.tensor([[0, 1], [1, -0]]))),
    "indices of several axes": (
        lambda x, i, j: (x[:, i, j], x[i, :, j], x[i, j], x[:, i, j, i], x[i, j, j, i], x[:, :, j, j]),
        (IMAGE, torch.tensor([[0, -1], [1, 0]]), torch.tensor([1, 0])),
    ),
    "diagonals": (
        lambda x: (
            x.diagonal(), x.diagonal(1, 2, 3), x.diagonal(-2, 3, 1), x.diagonal(-1, -2, -1), torch.trace(x[0, 0]),
        ),
        (IMAGE,),
    ),
    "assignments": (assigned, (IMAGE,)),
    "other pads": (
        lambda x: tuple(F.pad(x, (2, 1, 1, 1), mode=mode) for mode in ("reflect", "replicate", "circular")), (IMAGE,),
    ),
    "norms": (
        lambda x: (
            *(
                torch.linalg.vector_norm(x, order, axes, keepdim=axes == 1)
                for order in (0, 1, 2, 3, 0.5, -1, INF, -INF) for axes in (None, 1, (0, 2))
            ),
            F.normalize(x, dim=1), F.cosine_similarity(x, 2 * x + 1), torch.linalg.norm(x),
        ),
        (X,),
    ),
    "inverses": (
        lambda x: (
            torch.asinh(9 * x), torch.acosh(1 + x.abs()), torch.atanh(x), torch.atan2(x, x.flip(0)),
            torch.hypot(x, x.flip(1)), torch.exp2(3 * x), torch.exp2((9 * x).long()),
        ),
        (X,),
    ),
    "edges": (
        lambda x: (torch.asinh(x), torch.acosh(x), torch.atanh(x), torch.atan2(x, x.flip(0)), torch.hypot(x, x)),
        (torch.tensor([0.0, -0.0, 1e30, -1e30, 1e-30, 1, INF, torch.nan, -2]),),
    ),
    "gather": (lambda x, n: x.gather(2, n), (X, torch.tensor([[[0, 3], [1, 1], [2, 0]]] * 2))),
    "made": (
        lambda x: (torch.zeros(2) + torch.ones(2), torch.full((2,), 3.5), torch.arange(1, 9, 3), torch.zeros_like(x)),
        (X,),
    ),
    "triangles": (lambda x: (x.tril(), x.triu(1)), (X,)),
    "cumsum": (lambda x, n: (x.cumsum(1), n.cumsum(0)), (X, WHOLE)),
    "upsample": (
        lambda x: (
            *(F.interpolate(x, scale_factor=s) for s in (2, 1.7, 0.6)), F.interpolate(x, (9, 5)),
            F.interpolate(x[0], 11),
        ),
        (IMAGE,),
    ),
    **{
        f"bilinear, align_corners={corners}": (
            lambda x, corners=corners: tuple(
                F.interpolate(x, mode="bilinear", align_corners=corners, **size)
                for size in (
                    {"scale_factor": 2}, {"scale_factor": (1.7, 0.6)}, {"size": (9, 5)}, {"size": (1, 13)},
                    {"scale_factor": 1.1}, {"scale_factor": 1.7, "recompute_scale_factor": True},
                )
            ),
            (IMAGE,),
        )
        for corners in (False, True)
    },
    "products": (
        lambda x, y: (x @ y, torch.bmm(x, x.mT), x[0] @ x[1].t(), x[0, 0] @ y, x[0] @ x[0, 0]),
        (X, drawn(4, 5)),
    ),
    "addmm": (lambda x, y: torch.addmm(y, x[0], x[1].t(), alpha=2, beta=3), (X, drawn(3, 3))),
    "linear": (torch.nn.Linear(4, 5), (X,)),
    "reductions": (
        lambda x: (x.sum(), x.sum(1), x.mean((0, 2), keepdim=True), x.prod(1), x.amax(2), x.amin((0, 1)),
                   (x > 0).sum(), x.var(1), x.std(), x.var((0, 1), correction=0), *torch.var_mean(x, 1)),
        (X,),
    ),
    "extrema": (
        lambda x: (*x.max(1), *x.min(2, keepdim=True), x.max(), x.argmax(1), x.argmin(), x.argmax(2, True)),
        (X,),
    ),
    "any": (lambda x: ((x > 0).any(1), (x > -0.9).all(), (x > 5).any()), (X,)),
    "softmax": (lambda x: (x.softmax(-1), x.log_softmax(1), x.logsumexp(2), F.softmin(x, 0)), (X,)),
    "orders": (lambda x: (*x.sort(1), *x.sort(2, descending=True), *x.topk(2), *x.topk(1, 1, largest=False)), (X,)),
    "orders of a number": (lambda x: (*x.sort(), *x.topk(1)), (torch.tensor(3.0),)),
    "rounded to decimals": (lambda x: [torch.round(x * 50, decimals=d) for d in (-1, 0, 2)], (X,)),
    "arithmetic of truth": (lambda x: (x.isfinite(), (x > 0) * (x < 0.5), (x > 0) + (x < -0.5)), (X,)),
    "integers beside floats": (
        lambda n, x: (n == x, n <= x, n > x), (torch.tensor([1, 2, (1 << 24) + 1]), torch.tensor([1, 2.5, 1 << 24])),
    ),
    "multiples": (lambda x, y: (torch.rsub(x, y, alpha=2), torch.sub(x, y, alpha=3)), (X, Y)),
    "nothing": (lambda x: (x.any(), x.all(), (x > 0).any(0), (x > 0).all(0)), (torch.zeros(0, 3),)),
    "addmm of nothing": (lambda x, y: torch.addmm(y, x[0], x[1].t(), beta=0), (X, torch.full((3,), torch.nan))),
    "layer norm": (torch.nn.LayerNorm([3, 4]), (X,)),
    "batch norm": (torch.nn.BatchNorm2d(4), (IMAGE,)),
    "group norm": (torch.nn.GroupNorm(2, 4), (IMAGE,)),
    "instance norm": (torch.nn.InstanceNorm2d(4), (IMAGE,)),
    "conv2d": (torch.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), (IMAGE,)),
    "conv of groups": (torch.nn.Conv2d(4, 6, 3, groups=2, padding="same"), (IMAGE,)),
    "conv1d": (torch.nn.Conv1d(3, 5, 3, stride=2, padding=1), (drawn(2, 3, 9),)),
    "transposed conv": (torch.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (IMAGE,)),
    "max pool": (lambda x: (F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, ceil_mode=True)), (IMAGE,)),
    "avg pool": (
        lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, 2, 1, count_include_pad=False), F.avg_pool1d(x[0], 2)),
        (IMAGE,),
    ),
    "adaptive pool": (lambda x: (F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(x, 1)), (IMAGE,)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (drawn(2, 2, 5, 4),)),
    "lstm": (torch.nn.LSTM(4, 3, batch_first=True), (X,)),
    "gru": (torch.nn.GRU(4, 3), (X,)),
    "encoder": (torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, activation="gelu"), (X,)),
}  # fmt: skip


def groups() -> list[list[str]]:
    """Names of cases: functions of the same inputs together, networks alone."""
    found: dict[Any, list[str]] = {}
    for name, (function, inputs) in CASES.items():
        key = name if isinstance(function, torch.nn.Module) else tuple(map(id, inputs))
        found.setdefault(key, []).append(name)
    return list(found.values())


@pytest.mark.parametrize("names", groups(), ids=lambda names: names[0])
def test_programs_agree_with_torch(names):
    torch.manual_seed(0)
    functions, inputs = [CASES[name][0] for name in names], CASES[names[0]][1]
    check(functions[0] if len(names) == 1 else lambda *x: [function(*x) for function in functions], *inputs)


def test_weights_are_constants_and_inputs_have_torch_s_names():
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(drawn(3))
            self.register_buffer("shift", drawn(3, seed=1), persistent=False)

        def forward(self, first: Any, second: Any) -> Any:
            return first * self.w + second + self.shift

    module = from_exported(exported(Network(), (drawn(3), drawn(3))))
    main = module.function("main")
    assert [v.name for v in main.parameters] == ["first", "second"]
    assert sum(i.operation == "constant" for i in main.body) == 2


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        (lambda x: torch.linalg.inv(x), (drawn(3, 3),), r"linalg_inv_ex.*is not supported"),
        (
            lambda x: torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,)),
            (X,),
            r"'cond' .*: control flow and effects are not supported; torch\.where chooses",
        ),
        (lambda x: torch.linalg.det(x), (drawn(3, 3),), "is not supported; near it are linalg_vector_norm"),
        (lambda x: x.to(torch.complex64).real, (X,), "elements complex64 are not supported; there are bool"),
        (lambda x: x[torch.tensor([[True, False, True]] * 2)], (X,), "the size u0 depends on the arguments' values"),
        (lambda n: n & 3, (WHOLE,), "bits of int64 are not supported"),
        (lambda x: F.interpolate(x, (9, 9), mode="bilinear"), (IMAGE.to(torch.uint8),), "uint8 are not interpolated"),
        (lambda x: F.interpolate(x, (9, 9), mode="bilinear", antialias=True), (IMAGE,), "_upsample_bilinear2d_aa"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(function, inputs, message):
    with pytest.raises(GraphImportError, match=message):
        from_exported(exported(function, inputs))


def test_networks_in_training_and_other_objects_are_refused():
    program = torch.export.export(torch.nn.BatchNorm2d(4).train(), (IMAGE,))
    with pytest.raises(GraphImportError, match=r"it changes .*; export the model for inference: model\.eval\(\)"):
        from_exported(program)
    with pytest.raises(GraphImportError, match=r"a program of torch.* is needed, and not Linear"):
        from_exported(torch.nn.Linear(2, 2))


def test_arguments_that_are_left_out_have_torch_s_defaults():
    check(lambda x: (F.hardtanh(10 * x), F.hardtanh(10 * x, -1.0, 1.0), F.celu(x), F.softplus(50 * x)), X)


def test_sizes_must_be_static():
    batch = torch.export.Dim("batch", min=2, max=9)
    program = torch.export.export(torch.nn.Linear(4, 2), (drawn(3, 4),), dynamic_shapes=({0: batch},))
    with pytest.raises(GraphImportError, match="is not static; export the model with the shapes"):
        from_exported(program)


def test_values_inside_are_fetched_by_the_names_of_nodes_and_modules():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    inputs = torch.randn(4, 2)
    program = torch.export.export(model, (inputs,))
    for name, inner in (("tanh", model[:2]), ("1", model[:2]), ("0", model[:1])):
        module = from_exported(program, fetches=[name])
        assert np.allclose(interpret(module, "main", [inputs.numpy()])[0], inner(inputs).detach().numpy(), atol=1e-6)
    with pytest.raises(GraphImportError, match=r"there is no value 'hidden' to fetch; there are .*tanh"):
        from_exported(program, fetches=["hidden"])


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(half):
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(4, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(60, 4), torch.nn.Softmax(-1)
    network = torch.nn.Sequential(*layers).to(half).eval()
    module = from_exported(exported(network, (IMAGE.to(half),)))
    image = IMAGE.to(half).float()
    (found,) = interpret(module, "main", [image.numpy()])
    with torch.no_grad():
        np.testing.assert_allclose(found, network.float()(image).numpy(), rtol=2e-5)
