"""Random graphs of TensorFlow with their values: `python experiments/tensorflow_networks.py FOLDER COUNT SEED`.

Runs where TensorFlow is installed, and needs nothing of Shine; `tensor_fuzz.py` starts it. A graph `I.pb` has 5 to 25
operations on tensors of static shapes, drawn from `OPERATIONS`; `I.npz` has the arguments (`in/NAME`) and the values
of all last nodes (`out/NAME`). Values stay moderate: what could grow goes through `softsign`. Operations that jump
(comparisons, rounding, places of extrema) read only values that every correct program computes to the bit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

MOST_ELEMENTS = 4096
"""Tensors with more elements are not operands."""


class Drawing:
    """A graph in the making: floats, and which of them are exact."""

    def __init__(self, rng: Generator, tf: Any, dtype: str) -> None:
        self.rng, self.tf, self.dtype = rng, tf, dtype
        self.tensors: list[Any] = []
        self.exact: set[str] = set()
        self.arguments: dict[str, Any] = {}

    def argument(self) -> None:
        """Add an input of 1 to 4 axes."""
        rank = int(self.rng.integers(1, 5))
        shape = [int(self.rng.integers(1, 7)) for _ in range(rank)]
        name = f"x{len(self.arguments)}"
        self.arguments[name] = self.rng.normal(size=shape).astype(self.dtype)
        self.add(self.tf.compat.v1.placeholder(self.dtype, shape, name), True)

    def add(self, tensor: Any, exact: bool) -> None:
        """Keep a result."""
        self.tensors.append(tensor)
        if exact:
            self.exact.add(tensor.name)

    def pick(self, holds: Callable[[Any], bool] = lambda tensor: True) -> Any:
        """One of the latest tensors that fulfil a condition."""
        found = [t for t in self.tensors if t.dtype == self.dtype and holds(t) and np.prod(t.shape) <= MOST_ELEMENTS]
        if not found:
            raise LookupError
        return found[-1 - min(int(self.rng.geometric(0.3)) - 1, len(found) - 1)]

    def is_exact(self, *tensors: Any) -> bool:
        """Whether every correct program has these bits."""
        return all(tensor.name in self.exact for tensor in tensors)

    def constant(self, *shape: int) -> Any:
        """A constant of moderate numbers."""
        return self.tf.constant(self.rng.normal(size=shape).astype(self.dtype))

    def axis(self, tensor: Any) -> int:
        """An axis, counted from either end."""
        return int(self.rng.integers(-len(tensor.shape), len(tensor.shape)))


Draw = Callable[[Drawing], tuple[Any, bool]]
OPERATIONS: dict[str, Draw] = {}


def operation(draw: Draw) -> Draw:
    """Register an operation, which returns a tensor and whether it is exact."""
    OPERATIONS[draw.__name__] = draw
    return draw


def _unary(name: str, function: Callable[[Any, Any], Any], exact: bool = False, steps: bool = False) -> None:
    def draw(d: Drawing) -> tuple[Any, bool]:
        x = d.pick(d.is_exact if steps else lambda tensor: True)
        return function(d.tf, x), exact and d.is_exact(x)

    OPERATIONS[name] = draw


for _name in ("tanh", "sigmoid", "sin", "cos", "atan"):
    _unary(_name, lambda tf, x, name=_name: getattr(tf, name)(x))
for _name in ("softplus", "elu", "selu", "softsign", "gelu"):
    if _name != "gelu":
        _unary(_name, lambda tf, x, name=_name: getattr(tf.nn, name)(x))
_unary("gelu", lambda tf, x: tf.nn.gelu(x, approximate=True))
_unary("exp", lambda tf, x: tf.exp(tf.nn.softsign(x)))
_unary("log", lambda tf, x: tf.math.log(tf.abs(x) + 0.5))
_unary("rsqrt", lambda tf, x: tf.math.rsqrt(tf.abs(x) + 0.5))
_unary("pow", lambda tf, x: tf.pow(tf.abs(x) + 0.5, 0.7))
_unary("relu", lambda tf, x: tf.nn.relu(x), exact=True)
_unary("relu6", lambda tf, x: tf.nn.relu6(x), exact=True)
_unary("abs", lambda tf, x: tf.abs(x), exact=True)
_unary("neg", lambda tf, x: -x, exact=True)
_unary("clip", lambda tf, x: tf.clip_by_value(x, -0.5, 1.5), exact=True)
_unary("leaky_relu", lambda tf, x: tf.nn.leaky_relu(x, 0.25), exact=True)
_unary("floor", lambda tf, x: tf.floor(x), exact=True, steps=True)
_unary("round", lambda tf, x: tf.round(x), exact=True, steps=True)
_unary("sign", lambda tf, x: tf.sign(x), exact=True, steps=True)
_unary("softmax", lambda tf, x: tf.nn.softmax(x))
_unary("log_softmax", lambda tf, x: tf.nn.log_softmax(x))
_unary("squeeze", lambda tf, x: tf.squeeze(x), exact=True)
_unary("by_shape", lambda tf, x: x / tf.cast(tf.reduce_prod(tf.shape(x)) + 1, x.dtype), exact=True)
_unary("integers", lambda tf, x: tf.cast(tf.cast(x * 3, "int32") // 2 % 5, x.dtype), exact=True, steps=True)


@operation
def arithmetic(d: Drawing) -> tuple[Any, bool]:
    x = d.pick()
    shape = [size if d.rng.random() < 0.7 else 1 for size in x.shape][int(d.rng.integers(0, 2)) :]
    y = d.pick(lambda t: t.shape == x.shape) if d.rng.random() < 0.4 else d.constant(*shape)
    d.exact |= {y.name} if y.op.type == "Const" else set()
    apply = [d.tf.add, d.tf.subtract, d.tf.maximum, d.tf.minimum, d.tf.math.squared_difference][int(d.rng.integers(5))]
    made = apply(x, y)
    return (d.tf.nn.softsign(made), False) if "squared" in apply.__name__ else (made, d.is_exact(x, y))


@operation
def choice(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(d.is_exact)
    y = d.pick(lambda t: t.shape == x.shape)
    return d.tf.where(x > 0.1, y, d.constant(*x.shape)), False


@operation
def total(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) > 0)
    apply = [d.tf.reduce_sum, d.tf.reduce_mean, d.tf.reduce_max, d.tf.reduce_min][int(d.rng.integers(4))]
    axes = sorted({d.axis(x) % len(x.shape) for _ in range(2)})
    return d.tf.nn.softsign(apply(x, axes, keepdims=bool(d.rng.integers(2)))), False


@operation
def matmul(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) >= 2)
    turned = bool(d.rng.integers(2))
    inner, outer = x.shape[-1], int(d.rng.integers(1, 8))
    w = d.constant(outer, inner) if turned else d.constant(inner, outer)
    if len(x.shape) == 2:
        return d.tf.nn.softsign(d.tf.matmul(x, w, transpose_b=turned)), False
    return d.tf.nn.softsign(d.tf.matmul(x, w, adjoint_b=turned)), False


@operation
def attention(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) == 3)
    return d.tf.matmul(d.tf.nn.softmax(d.tf.matmul(x, x, transpose_b=True)), x), False


@operation
def einsum(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) == 3)
    y = d.constant(x.shape[2], 3, x.shape[0])
    equation = ["abc,cda->bd", "abc,cda->abd", "abc,cda->dba"][int(d.rng.integers(3))]
    return d.tf.nn.softsign(d.tf.einsum(equation, x, y)), False


@operation
def convolution(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) == 4)
    size = [int(d.rng.integers(1, min(4, n + 1))) for n in x.shape[1:3]]
    by = [1, int(d.rng.integers(1, 3)), int(d.rng.integers(1, 3)), 1]
    padding = ["SAME", "VALID"][int(d.rng.integers(2))]
    if d.rng.random() < 0.3:
        by[2] = by[1]
        made = d.tf.nn.depthwise_conv2d(x, d.constant(*size, x.shape[3], 2), by, padding)
    elif padding == "SAME" and d.rng.random() < 0.3:
        made = d.tf.nn.conv2d(x, d.constant(*size, x.shape[3], 3), 1, "SAME", dilations=2)
    else:
        made = d.tf.nn.conv2d(x, d.constant(*size, x.shape[3], 3), by, padding)
    return d.tf.nn.softsign(d.tf.nn.bias_add(made, d.constant(made.shape[3]))), False


@operation
def convolution_of_series(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) == 3)
    return d.tf.nn.softsign(d.tf.nn.conv1d(x, d.constant(2, x.shape[2], 3), 1, "SAME")), False


@operation
def pool(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) == 4)
    size = [int(d.rng.integers(1, n + 1)) for n in x.shape[1:3]]
    by = [int(d.rng.integers(1, 4)) for _ in range(2)] if d.rng.random() < 0.6 else size
    apply = [d.tf.nn.max_pool2d, d.tf.nn.avg_pool2d][int(d.rng.integers(2))]
    return apply(x, size, by, ["SAME", "VALID"][int(d.rng.integers(2))]), False


@operation
def normalization(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) == 4 and d.dtype == "float32")
    n = x.shape[3]
    variance = d.tf.abs(d.constant(n)) + 0.1
    made = d.tf.compat.v1.nn.fused_batch_norm(
        x, d.constant(n), d.constant(n), d.constant(n), variance, is_training=False
    )
    return d.tf.nn.softsign(made[0]), False


@operation
def reshape(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) > 0)
    which = int(d.rng.integers(4))
    if which == 0:
        return d.tf.reshape(x, [-1, x.shape[-1]]), d.is_exact(x)
    if which == 1:
        return d.tf.expand_dims(x, d.axis(x)), d.is_exact(x)
    if which == 2:
        return d.tf.transpose(x, d.rng.permutation(len(x.shape))), d.is_exact(x)
    return d.tf.tile(x, [int(d.rng.integers(1, 3)) for _ in x.shape]), d.is_exact(x)


@operation
def cut(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) > 0)
    parts: list[Any] = []
    for size in x.shape:
        ends = [int(end) for end in d.rng.integers(-size, size + 1, 2)]
        by = int(d.rng.choice([1, 1, 2, -1]))
        made = [slice(None), slice(min(ends), None, abs(by)), slice(None, None, by), int(d.rng.integers(-size, size))]
        parts.append(made[int(d.rng.choice(4, p=[0.5, 0.15, 0.2, 0.15]))])
    if d.rng.random() < 0.2:
        parts.insert(0, d.tf.newaxis)
    made = x[tuple(parts)]
    if 0 in made.shape:
        raise LookupError
    return made, d.is_exact(x)


@operation
def joined(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) > 0)
    axis = d.axis(x)
    if d.rng.random() < 0.5:
        pieces = d.tf.unstack(x, axis=axis)
        return d.tf.stack(pieces[::-1], axis=int(d.rng.integers(0, len(x.shape)))), d.is_exact(x)
    first = int(d.rng.integers(0, x.shape[axis] + 1))
    a, b = d.tf.split(x, [first, -1], axis)
    return d.tf.concat([b, x, a], axis), d.is_exact(x)


@operation
def padded(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) > 0 and min(t.shape) > 1)
    paddings = d.rng.integers(0, 2, (len(x.shape), 2))
    mode = ["CONSTANT", "REFLECT", "SYMMETRIC"][int(d.rng.integers(3))]
    return d.tf.pad(x, paddings, mode), d.is_exact(x)


@operation
def taken(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: len(t.shape) > 0)
    axis = d.axis(x)
    if len(x.shape) > 1 and d.rng.random() < 0.4:
        indices = d.rng.integers(0, x.shape[1], (x.shape[0], 3))
        return d.tf.gather(x, indices, axis=1, batch_dims=1), d.is_exact(x)
    indices = d.rng.integers(0, x.shape[axis], [int(n) for n in d.rng.integers(1, 4, int(d.rng.integers(0, 3)))])
    return d.tf.gather(x, indices, axis=axis), d.is_exact(x)


@operation
def places(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: d.is_exact(t) and len(t.shape) > 0)
    which = int(d.rng.integers(4))
    if which == 0:
        return d.tf.cast(d.tf.argmax(x, d.axis(x)), d.dtype), True
    if which == 1:
        values, indices = d.tf.nn.top_k(x, int(d.rng.integers(1, x.shape[-1] + 1)))
        return values + d.tf.cast(indices, d.dtype), True
    if which == 2:
        return d.tf.one_hot(d.tf.cast(d.tf.abs(x) * 2, "int32"), 4, 0.5, -1.5, dtype=d.dtype), True
    return d.tf.cast(d.tf.reduce_any(x > 0.3, d.axis(x)), d.dtype), True


@operation
def condition(d: Drawing) -> tuple[Any, bool]:
    x = d.pick(lambda t: d.is_exact(t) and len(t.shape) > 0)
    y, z = d.constant(*x.shape), d.constant()
    first = d.tf.reshape(x, [-1])[0]
    return d.tf.cond(first > 0.2, lambda: d.tf.tanh(x + y), lambda: y * z), False


@operation
def loop(d: Drawing) -> tuple[Any, bool]:
    x = d.pick()
    y = d.constant(*x.shape)
    count = int(d.rng.integers(0, 4))
    _, made = d.tf.while_loop(lambda i, s: i < count, lambda i, s: (i + 1, d.tf.tanh(s + y)), (d.tf.constant(0), x))
    return made, False


@operation
def called(d: Drawing) -> tuple[Any, bool]:
    x = d.pick()

    @d.tf.function
    def inner(a: Any) -> Any:
        return d.tf.sin(a) + d.tf.reduce_mean(a)

    return inner(x), False


def random_graph(tf: Any, rng: Generator, dtype: str) -> tuple[Any, dict[str, Any], list[str]]:
    """A GraphDef, its arguments and its results."""
    with tf.Graph().as_default() as graph:
        d = Drawing(rng, tf, dtype)
        for _ in range(int(rng.integers(1, 4))):
            d.argument()
        wanted = int(rng.integers(5, 26)) + len(d.tensors)
        while len(d.tensors) < wanted:
            name = list(OPERATIONS)[int(rng.integers(len(OPERATIONS)))]
            try:
                tensor, exact = OPERATIONS[name](d)
            except (LookupError, ValueError):  # no operand fits
                continue
            if len(tensor.shape) <= 5:
                d.add(tensor, exact)
        read = {name.name for tensor in d.tensors for name in tensor.op.inputs}
        last = [t for t in d.tensors if t.name not in read and t.op.type != "Placeholder"]
        for place, tensor in enumerate(last):
            tf.identity(tensor, name=f"result{place}")
        return graph.as_graph_def(), d.arguments, [f"result{place}" for place in range(len(last))]


def main() -> None:
    import tensorflow as tf

    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    tf.compat.v1.enable_control_flow_v2()
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        definition, arguments, results = random_graph(tf, rng, "float64" if place % 4 == 3 else "float32")
        with tf.Graph().as_default() as graph:
            tf.graph_util.import_graph_def(definition, name="")
            with tf.compat.v1.Session(graph=graph, config=config) as session:
                feed = {f"{name}:0": value for name, value in arguments.items()}
                values = session.run([f"{name}:0" for name in results], feed)
        (folder / f"{place}.pb").write_bytes(definition.SerializeToString(deterministic=True))
        arrays = {f"in/{name}": value for name, value in arguments.items()}
        arrays |= {f"out/{name}": value for name, value in zip(results, values, strict=True)}
        np.savez(folder / f"{place}.npz", **arrays)


if __name__ == "__main__":
    main()
