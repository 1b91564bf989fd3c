"""Random programs of torch.export with their values: `python experiments/torch_networks.py FOLDER COUNT SEED`.

Needs torch, and nothing of Shine; `tensor_fuzz.py` starts it. A program `I.pt2` has 5 to 25 steps on tensors of static
shapes, drawn from `STEPS`; `I.npz` has the arguments (`in/NAME`) and the values of all last tensors (`out/NAME`),
random derivatives by the results (`seed/NAME`) and what autograd makes of them: those by the arguments (`grad/NAME`).
Values stay moderate: what could grow goes through `softsign`. Steps that jump (comparisons, places of extrema) read
inputs only.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator

F = torch.nn.functional

MOST_ELEMENTS = 4096
"""Tensors with more elements are not operands."""

MODERATE = 4.0
"""Largest magnitude of values that are not sent through `softsign`."""

Step = Callable[..., Any]


class Drawing:
    """A program in the making: steps on numbered tensors, and the value of each."""

    def __init__(self, rng: Generator, dtype: Any) -> None:
        self.rng, self.dtype = rng, dtype
        self.values: list[Any] = []
        self.steps: list[tuple[Step, tuple[int, ...]]] = []
        self.weights: list[Any] = []
        self.arguments = 0

    def argument(self) -> None:
        """Add an input of 1 to 4 axes."""
        shape = [int(n) for n in self.rng.integers(1, 7, int(self.rng.integers(1, 5)))]
        self.values.append(torch.tensor(self.rng.normal(size=shape), dtype=self.dtype))
        self.arguments += 1

    def weight(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Any:
        """A parameter of the network."""
        found = torch.nn.Parameter(torch.tensor(self.rng.uniform(low, high, shape), dtype=self.dtype), False)
        self.weights.append(found)
        return found

    def pick(self, holds: Callable[[Any], bool] = lambda x: True, given: bool = False) -> int:
        """One of the latest tensors that fulfil a condition."""
        found = [
            place
            for place, value in enumerate(self.values[: self.arguments] if given else self.values)
            if value.dtype == self.dtype and 0 < value.numel() <= MOST_ELEMENTS and holds(value)
        ]
        if not found:
            raise LookupError
        return found[-1 - min(int(self.rng.geometric(0.3)) - 1, len(found) - 1)]

    def axis(self, place: int) -> int:
        """One of the axes, perhaps counted from the end."""
        rank = self.values[place].ndim
        if not rank:
            raise LookupError
        return int(self.rng.integers(-rank, rank))

    def do(self, step: Step, *places: int) -> None:
        """Add a step, and another if its values are large."""
        value = step(*(self.values[place] for place in places))
        if value.numel() > MOST_ELEMENTS or not value.numel() or value.ndim > 5:
            raise LookupError
        if value.is_floating_point() and not value.isfinite().all():
            raise LookupError
        self.steps.append((step, places))
        self.values.append(value)
        if value.is_floating_point() and value.abs().max() > MODERATE:
            self.do(F.softsign, len(self.values) - 1)


class Network(torch.nn.Module):
    """The steps of a drawing."""

    def __init__(self, drawing: Drawing, last: list[int]) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(drawing.weights)
        self.steps, self.last = drawing.steps, last

    def forward(self, *given: Any) -> Any:
        values = list(given)
        for step, places in self.steps:
            values.append(step(*(values[place] for place in places)))
        return tuple(values[place] for place in self.last)


def unary(d: Drawing) -> None:
    """A smooth function of one tensor."""
    names = ["neg", "abs", "exp", "sin", "cos", "tanh", "atan", "sigmoid", "relu", "erf", "expm1", "square"]
    activations = "gelu silu mish softplus softsign elu selu leaky_relu hardswish hardsigmoid hardtanh logsigmoid"
    name = str(d.rng.choice([*names, *activations.split()]))
    d.do(getattr(torch, name) if name in names else getattr(F, name), d.pick())


def binary(d: Drawing) -> None:
    """Arithmetic with broadcasting."""
    place = d.pick()
    shape = [1 if d.rng.random() < 0.4 else n for n in d.values[place].shape][int(d.rng.integers(0, 2)) :]
    w = d.weight(*shape)
    function = getattr(torch, str(d.rng.choice(["add", "sub", "mul", "maximum", "minimum"])))
    d.do(lambda x: function(x, w), place)


def numbers(d: Drawing) -> None:
    """Arithmetic with numbers of Python."""
    a, n = float(d.rng.uniform(0.5, 2)), int(d.rng.integers(2, 4))
    steps: list[Step] = [
        lambda x: a - x,
        lambda x: x / a,
        lambda x: x**n,
        lambda x: 1 / (x * x + a),
        lambda x: n * x + 1,
    ]
    d.do(steps[int(d.rng.integers(len(steps)))], d.pick())


def choice(d: Drawing) -> None:
    """A choice by a comparison of inputs."""
    a = float(d.rng.normal())
    steps: list[Step] = [
        lambda x: torch.where(x > a, x, -x),
        lambda x: x.masked_fill(x <= a, 0.5),
        lambda x: x.clamp(-0.5, 0.7),
        lambda x: (x < a).to(x.dtype) + x,
    ]
    d.do(steps[int(d.rng.integers(len(steps)))], d.pick(given=True))


def linear(d: Drawing) -> None:
    """A dense layer."""
    place = d.pick(lambda x: x.ndim > 0)
    n, width = d.values[place].shape[-1], int(d.rng.integers(1, 8))
    w, bias = d.weight(width, n), d.weight(width)
    d.do(lambda x: F.linear(x, w, bias), place)


def product(d: Drawing) -> None:
    """A product of a tensor with itself."""
    d.do(lambda x: x @ x.mT, d.pick(lambda x: x.ndim in (2, 3)))


def attention(d: Drawing) -> None:
    """Attention of a sequence to itself."""
    causal = bool(d.rng.integers(2))
    place = d.pick(lambda x: x.ndim == 4)
    d.do(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=causal), place)


def convolution(d: Drawing) -> None:
    """A convolution of an image, or its adjoint."""
    place = d.pick(lambda x: x.ndim in (3, 4))
    space, channels = d.values[place].ndim - 2, d.values[place].shape[1]
    groups = int(d.rng.choice([g for g in (1, 2, 3) if channels % g == 0]))
    window = [int(n) for n in d.rng.integers(1, 4, space)]
    stride, padding = int(d.rng.integers(1, 3)), int(d.rng.integers(1, 3))
    if d.rng.random() < 0.3:
        w = d.weight(channels, int(d.rng.integers(1, 3)), *window)
        turned = F.conv_transpose1d if space == 1 else F.conv_transpose2d
        d.do(lambda x: turned(x, w, stride=stride, padding=0, groups=groups), place)
        return
    w = d.weight(groups * int(d.rng.integers(1, 4)), channels // groups, *window)
    convolve = F.conv1d if space == 1 else F.conv2d
    d.do(lambda x: convolve(x, w, stride=stride, padding=padding, groups=groups), place)


def pooling(d: Drawing) -> None:
    """Windows of an image."""
    place = d.pick(lambda x: x.ndim == 4 and min(x.shape[2:]) > 2)
    size, stride, padding = int(d.rng.integers(2, 4)), int(d.rng.integers(1, 3)), int(d.rng.integers(0, 2))
    ceil, counted = bool(d.rng.integers(2)), bool(d.rng.integers(2))
    steps: list[Step] = [
        lambda x: F.max_pool2d(x, size, stride, padding, ceil_mode=ceil),
        lambda x: F.avg_pool2d(x, size, stride, padding, ceil, counted),
        lambda x: F.adaptive_avg_pool2d(x, size),
    ]
    d.do(steps[int(d.rng.integers(len(steps)))], place)


def reduction(d: Drawing) -> None:
    """A reduction of one axis."""
    place = d.pick(lambda x: x.ndim > 0)
    axis, keep = d.axis(place), bool(d.rng.integers(2))
    name = str(d.rng.choice(["mean", "sum", "amax", "amin", "prod", "logsumexp"]))
    d.do(lambda x: getattr(x, name)(axis, keepdim=keep), place)


def place_of_extremum(d: Drawing) -> None:
    """Where an extremum of an input is."""
    place = d.pick(given=True)
    axis, name = d.axis(place), str(d.rng.choice(["argmax", "argmin"]))
    d.do(lambda x: getattr(x, name)(axis).to(x.dtype), place)


def order(d: Drawing) -> None:
    """The largest elements of an input."""
    place = d.pick(given=True)
    axis = d.axis(place)
    count = int(d.rng.integers(1, d.values[place].shape[axis] + 1))
    d.do(lambda x: x.topk(count, axis)[0] + x.sort(axis)[0].narrow(axis, 0, count), place)


def soft(d: Drawing) -> None:
    """A distribution along an axis."""
    place = d.pick(lambda x: x.ndim > 0)
    axis, name = d.axis(place), str(d.rng.choice(["softmax", "log_softmax"]))
    d.do(lambda x: getattr(x, name)(axis), place)


def normalization(d: Drawing) -> None:
    """A normalized tensor."""
    if d.rng.random() < 0.5:
        place = d.pick(lambda x: x.ndim > 0 and x.shape[-1] > 1)
        n = d.values[place].shape[-1]
        w, bias = d.weight(n), d.weight(n)
        d.do(lambda x: F.layer_norm(x, [n], w, bias, 0.1), place)
        return
    place = d.pick(lambda x: x.ndim in (3, 4))
    n = d.values[place].shape[1]
    average, variance, w = d.weight(n), d.weight(n, low=0.5, high=2.0), d.weight(n)
    d.do(lambda x: F.batch_norm(x, average, variance, w), place)


def movement(d: Drawing) -> None:
    """The same elements elsewhere."""
    place = d.pick(lambda x: x.ndim > 0)
    shape, axis = tuple(d.values[place].shape), d.axis(place)
    order = [int(n) for n in d.rng.permutation(len(shape))]
    pads = [int(n) for n in d.rng.integers(0, 3, 2 * len(shape))]
    indices = torch.tensor(d.rng.integers(0, shape[axis], 3))
    steps: list[Step] = [
        lambda x: x.permute(order),
        lambda x: x.reshape(-1, shape[-1]),
        lambda x: x.flatten(),
        lambda x: x.unsqueeze(axis),
        lambda x: torch.cat([x, x], axis),
        lambda x: x.flip(axis),
        lambda x: x.roll(1, axis),
        lambda x: F.pad(x, pads, value=0.5),
        lambda x: x.index_select(axis, indices),
        lambda x: x.select(axis, 0),
        lambda x: x[..., ::2],
        lambda x: x.cumsum(axis),
        lambda x: torch.stack(x.chunk(1, axis) * 2),
    ]
    d.do(steps[int(d.rng.integers(len(steps)))], place)


STEPS = (
    unary, unary, binary, binary, numbers, choice, linear, linear, product, attention, convolution, convolution,
    pooling, reduction, place_of_extremum, order, soft, normalization, movement, movement, movement,
)  # fmt: skip
"""What steps are drawn from."""


def random_program(rng: Generator, dtype: Any) -> tuple[Any, list[Any], list[Any]]:
    """A program, its arguments, and its results."""
    d = Drawing(rng, dtype)
    for _ in range(int(rng.integers(1, 4))):
        d.argument()
    wanted = int(rng.integers(5, 26))
    for _ in range(20 * wanted):
        if len(d.steps) >= wanted:
            break
        try:
            STEPS[int(rng.integers(len(STEPS)))](d)
        except (LookupError, RuntimeError):
            # No operand fits.
            continue
    read = {place for _, places in d.steps for place in places}
    last = [place for place in range(d.arguments, len(d.values)) if place not in read]
    given = d.values[: d.arguments]
    network = Network(d, last).eval()
    return torch.export.export(network, tuple(given)), given, [d.values[place] for place in last]


def gradients(program: Any, given: list[Any], rng: Generator) -> dict[str, Any]:
    """Random derivatives by the results, and those by the arguments that follow."""
    given = [x.detach().requires_grad_() for x in given]
    results = program.module()(*given)
    seeds = [torch.tensor(rng.uniform(-1, 1, tuple(y.shape)), dtype=y.dtype) for y in results]
    total = sum(((y * seed).sum() for y, seed in zip(results, seeds, strict=True)), torch.zeros(()))
    found = torch.autograd.grad(total, given, allow_unused=True) if total.requires_grad else [None] * len(given)
    grads = [torch.zeros_like(x) if g is None else g for x, g in zip(given, found, strict=True)]
    named = {f"seed/{i}": seed.numpy() for i, seed in enumerate(seeds)}
    return named | {f"grad/{i}": g.numpy() for i, g in enumerate(grads)}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        with torch.no_grad():
            program, given, results = random_program(rng, torch.float64 if place % 4 == 3 else torch.float32)
        torch.export.save(program, folder / f"{place}.pt2")
        arrays = {f"in/{i}": value.numpy() for i, value in enumerate(given)}
        arrays |= {f"out/{i}": value.detach().numpy() for i, value in enumerate(results)}
        arrays |= gradients(program, given, rng)
        np.savez(folder / f"{place}.npz", **arrays)


if __name__ == "__main__":
    main()
