"""Random models of ONNX with their values: `python experiments/onnx_networks.py FOLDER COUNT SEED`.

Needs onnx and onnxruntime, and nothing of Shine; `tensor_fuzz.py` starts it. A model `I.onnx` has 5 to 25 nodes on
tensors of static shapes, drawn from `OPERATORS`; `I.npz` has the arguments (`in/NAME`) and the values of all last
nodes (`out/NAME`). Values stay moderate: what could grow goes through `Softsign`. Operators that jump (comparisons,
rounding, places of extrema) read inputs only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.random import Generator

MOST_ELEMENTS = 4096
"""Tensors with more elements are not operands."""

MODERATE = 4.0
"""Largest magnitude of values that are not sent through `Softsign`."""


class Drawing:
    """A model in the making, with the value of each tensor."""

    def __init__(self, rng: Generator, dtype: str) -> None:
        self.rng, self.dtype = rng, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.arguments: dict[str, Any] = {}
        self.values: dict[str, Any] = {}

    def argument(self) -> None:
        """Add an input of 1 to 4 axes."""
        shape = self.rng.integers(1, 7, int(self.rng.integers(1, 5)))
        self.arguments[f"x{len(self.arguments)}"] = array = self.rng.normal(size=shape).astype(self.dtype)
        self.values[f"x{len(self.arguments) - 1}"] = array

    def constant(self, array: Any) -> str:
        """Add a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def floats(self, *shape: int, low: float = -1, high: float = 1) -> str:
        """Add a constant of random numbers."""
        return self.constant(self.rng.uniform(low, high, shape).astype(self.dtype))

    def integers(self, *numbers: int) -> str:
        """Add a list of integers."""
        return self.constant(np.array(numbers, np.int64))

    def pick(self, holds: Callable[[Any], bool] = lambda array: True, given: bool = False) -> str:
        """One of the latest tensors that fulfil a condition."""
        found = [
            name
            for name, array in self.values.items()
            if array.dtype == self.dtype
            and array.size
            and array.size <= MOST_ELEMENTS
            and holds(array)
            and (name in self.arguments or not given)
        ]
        if not found:
            raise LookupError
        return found[-1 - min(int(self.rng.geometric(0.3)) - 1, len(found) - 1)]

    def shape(self, name: str) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.values[name].shape)

    def axis(self, name: str) -> int:
        """One of the axes, perhaps counted from the end."""
        rank = len(self.shape(name))
        return int(self.rng.integers(-rank, rank))

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node; its value is computed at once, so that only what ONNX Runtime runs is kept."""
        names = [f"t{len(self.values)}_{i}" for i in range(outputs)]
        made = onnx.helper.make_node(operator, inputs, names, **attributes)
        found = run(self.model([made], inputs, names), {n: self.values[n] for n in inputs if n in self.values})
        if any(array.size > MOST_ELEMENTS or not array.size for array in found):
            raise LookupError
        self.nodes.append(made)
        self.values.update(zip(names, found, strict=True))
        return names[0]

    def keep(self, name: str) -> None:
        """Send a tensor through `Softsign` if its values are large."""
        array = self.values[name]
        if array.dtype == self.dtype and array.size and not np.abs(array).max() <= MODERATE:
            if not np.isfinite(array).all():
                raise LookupError
            self.node("Softsign", name)

    def model(self, nodes: list[Any], inputs: Any, outputs: list[str]) -> bytes:
        """The model of some nodes."""
        used = {name for node in nodes for name in node.input}
        values = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in self.values.items()
            if n in inputs
        ]
        results = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
        constants = [constant for constant in self.constants if constant.name in used]
        graph = onnx.helper.make_graph(nodes, "g", values, results, constants)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        data: bytes = onnx.shape_inference.infer_shapes(model).SerializeToString()
        return data


def run(model: bytes, arguments: dict[str, Any]) -> list[Any]:
    """What ONNX Runtime computes, without its own fusions."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    found: list[Any] = onnxruntime.InferenceSession(model, options).run(None, arguments)
    return found


def unary(d: Drawing) -> str:
    """A smooth function of one tensor."""
    names = "Neg Abs Exp Sin Cos Tanh Atan Sigmoid Relu Softplus Softsign Erf HardSigmoid LeakyRelu Elu Selu Identity"
    return d.node(str(d.rng.choice(names.split())), d.pick())


def binary(d: Drawing) -> str:
    """Arithmetic with broadcasting."""
    x = d.pick()
    shape = [1 if d.rng.random() < 0.4 else n for n in d.shape(x)][int(d.rng.integers(0, 2)) :]
    other = d.pick(lambda v: v.shape == d.shape(x)) if d.rng.random() < 0.4 else d.floats(*shape)
    return d.node(str(d.rng.choice(["Add", "Sub", "Mul", "Max", "Min"])), x, other)


def division(d: Drawing) -> str:
    """A quotient without a pole."""
    return d.node("Div", d.pick(), d.floats(low=0.5, high=2))


def comparison(d: Drawing) -> str:
    """A choice by a comparison of inputs."""
    x = d.pick(given=True)
    mask = d.node(str(d.rng.choice(["Less", "GreaterOrEqual", "Equal"])), x, d.floats())
    return d.node("Where", mask, x, d.floats())


def product(d: Drawing) -> str:
    """A matrix product."""
    x = d.pick()
    n = d.shape(x)[-1]
    return d.node("MatMul", x, d.floats(n, int(d.rng.integers(1, 8))))


def gemm(d: Drawing) -> str:
    """A matrix product with all options."""
    x = d.pick(lambda v: v.ndim == 2)
    flip, turn = int(d.rng.integers(2)), int(d.rng.integers(2))
    inner, width = d.shape(x)[0 if flip else 1], int(d.rng.integers(1, 8))
    y = d.floats(width, inner) if turn else d.floats(inner, width)
    return d.node("Gemm", x, y, d.floats(width), transA=flip, transB=turn, alpha=0.5, beta=float(d.rng.integers(3)))


def convolution(d: Drawing) -> str:
    """A convolution of an image."""
    x = d.pick(lambda v: v.ndim in (3, 4))
    space = len(d.shape(x)) - 2
    channels = d.shape(x)[1]
    groups = int(d.rng.choice([g for g in (1, 2, 3) if channels % g == 0]))
    window = [int(n) for n in d.rng.integers(1, 4, space)]
    kernel = d.floats(groups * int(d.rng.integers(1, 4)), channels // groups, *window)
    options = {"strides": [int(n) for n in d.rng.integers(1, 3, space)], "group": groups}
    if d.rng.random() < 0.3:
        return d.node("Conv", x, kernel, auto_pad=str(d.rng.choice(["SAME_UPPER", "SAME_LOWER"])), **options)
    options["pads"] = [int(n) for n in d.rng.integers(1, 4, 2 * space)]
    return d.node("Conv", x, kernel, **options)


def pooling(d: Drawing) -> str:
    """Windows of an image."""
    x = d.pick(lambda v: v.ndim in (3, 4))
    space = len(d.shape(x)) - 2
    options: dict[str, Any] = {"kernel_shape": [int(n) for n in d.rng.integers(1, 4, space)]}
    options["strides"] = [int(n) for n in d.rng.integers(1, 3, space)]
    options["pads"] = pads = [int(d.rng.integers(0, n)) for n in options["kernel_shape"] * 2]
    padded = [n + a + b for n, a, b in zip(d.shape(x)[2:], pads[:space], pads[space:], strict=True)]
    if any(wide > n for wide, n in zip(options["kernel_shape"], padded, strict=True)):
        raise LookupError  # ONNX Runtime rounds the number of windows towards 0, and not down
    if d.rng.random() < 0.5:
        return d.node("MaxPool", x, **options)
    return d.node("AveragePool", x, count_include_pad=int(d.rng.integers(2)), **options)


def reduction(d: Drawing) -> str:
    """A reduction of some axes."""
    names = ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"]
    x = d.pick()
    axes = d.rng.choice(len(d.shape(x)), int(d.rng.integers(1, len(d.shape(x)) + 1)), replace=False)
    if d.rng.random() < 0.3:
        return d.node("ReduceSum", x, d.integers(*axes), keepdims=int(d.rng.integers(2)))
    axes_input = d.integers(*axes)
    return d.node(str(d.rng.choice(names)), x, axes_input, keepdims=int(d.rng.integers(2)))


def place(d: Drawing) -> str:
    """Where an extremum of an input is."""
    x = d.pick(given=True)
    found = d.node(str(d.rng.choice(["ArgMax", "ArgMin"])), x, axis=d.axis(x), keepdims=int(d.rng.integers(2)))
    return d.node("Cast", found, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(d.dtype)))


def order(d: Drawing) -> str:
    """The largest elements of an input."""
    x = d.pick(given=True)
    axis = d.axis(x)
    count = int(d.rng.integers(1, d.shape(x)[axis] + 1))
    return d.node("TopK", x, d.integers(count), outputs=2, axis=axis, largest=int(d.rng.integers(2)))


def soft(d: Drawing) -> str:
    """A distribution along an axis."""
    x = d.pick()
    return d.node(str(d.rng.choice(["Softmax", "LogSoftmax"])), x, axis=d.axis(x))


def normalization(d: Drawing) -> str:
    """A normalized tensor."""
    x = d.pick(lambda v: v.ndim in (3, 4) and v[0, 0].size > 1)
    n = d.shape(x)[1]
    if d.rng.random() < 0.5:
        average, variance = d.floats(n), d.floats(n, low=0.5, high=2)
        return d.node("BatchNormalization", x, d.floats(n), d.floats(n), average, variance)
    return d.node("InstanceNormalization", x, d.floats(n), d.floats(n), epsilon=0.1)


def layer_norm(d: Drawing) -> str:
    """A normalized last axis."""
    x = d.pick(lambda v: v.shape[-1:] > (1,))
    n = d.shape(x)[-1]
    return d.node("LayerNormalization", x, d.floats(n), d.floats(n), epsilon=0.1)


def movement(d: Drawing) -> str:
    """The same elements elsewhere."""
    x = d.pick()
    shape, rank = d.shape(x), len(d.shape(x))
    kind = d.rng.integers(9)
    if kind == 0:
        return d.node("Transpose", x, perm=[int(n) for n in d.rng.permutation(rank)])
    if kind == 1:
        return d.node("Reshape", x, d.integers(-1, shape[-1]))
    if kind == 2:
        return d.node("Flatten", x, axis=int(d.rng.integers(-rank, rank + 1)))
    if kind == 3:
        return d.node("Unsqueeze", x, d.integers(int(d.rng.integers(-rank - 1, rank + 1))))
    if kind == 4:
        return d.node("Concat", x, x, axis=d.axis(x))
    if kind == 5:
        step = int(d.rng.choice([-2, -1, 1, 2]))
        ends = (99, -99) if step < 0 else (0, 99)
        return d.node("Slice", x, *(d.integers(n) for n in (*ends, d.axis(x), step)))
    if kind == 6:
        pads = [int(n) for n in d.rng.integers(0, 3, 2 * rank)]
        if d.rng.random() < 0.5:
            return d.node("Pad", x, d.integers(*pads), d.floats())
        fits = all(p < n for p, n in zip(pads, shape * 2, strict=True))
        return d.node("Pad", x, d.integers(*pads), mode=str(d.rng.choice(["edge", "reflect"] if fits else ["edge"])))
    if kind == 7:
        axis = d.axis(x)
        return d.node("Gather", x, d.integers(*d.rng.integers(-shape[axis], shape[axis], 3)), axis=axis)
    return d.node("Tile", x, d.integers(*d.rng.integers(1, 3, rank)))


def parts(d: Drawing) -> str:
    """A tensor in parts."""
    x = d.pick(lambda v: v.shape[0] > 1)
    n = d.shape(x)[0]
    return d.node("Split", x, d.integers(1, n - 1), outputs=2, axis=0)


def sums(d: Drawing) -> str:
    """Sums up to each element."""
    x = d.pick()
    return d.node("CumSum", x, d.constant(np.int64(d.axis(x))), exclusive=int(d.rng.integers(2)))


OPERATORS = (
    unary, unary, binary, binary, division, comparison, product, product, gemm, convolution, convolution, pooling,
    reduction, place, order, soft, normalization, layer_norm, movement, movement, movement, parts, sums,
)  # fmt: skip
"""What nodes are drawn from."""


def random_model(rng: Generator, dtype: str) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
    """A model, its arguments, and its results."""
    d = Drawing(rng, dtype)
    for _ in range(int(rng.integers(1, 4))):
        d.argument()
    wanted = int(rng.integers(5, 26))
    for _ in range(20 * wanted):
        if len(d.nodes) >= wanted:
            break
        before = len(d.nodes), dict(d.values)
        try:
            d.keep(OPERATORS[int(rng.integers(len(OPERATORS)))](d))
        except Exception:
            # No operand fits, or ONNX Runtime has no such kernel for this element type.
            del d.nodes[before[0] :]
            d.values = before[1]
    read = {name for node in d.nodes for name in node.input}
    last = [name for node in d.nodes for name in node.output if name not in read]
    model = d.model(d.nodes, d.arguments, last)
    return model, d.arguments, dict(zip(last, run(model, d.arguments), strict=True))


def main() -> None:
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for place_of_model in range(count):
        rng = np.random.default_rng([seed, place_of_model])
        model, arguments, results = random_model(rng, "float64" if place_of_model % 4 == 3 else "float32")
        (folder / f"{place_of_model}.onnx").write_bytes(model)
        arrays = {f"in/{name}": value for name, value in arguments.items()}
        arrays |= {f"out/{name}": value for name, value in results.items()}
        np.savez(folder / f"{place_of_model}.npz", **arrays)


if __name__ == "__main__":
    main()
