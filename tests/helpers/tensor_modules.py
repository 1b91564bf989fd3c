"""Draws valid tensor modules of every operation, and arguments for which their values stay moderate."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.random import Generator

from shine.base.errors import FormError
from shine.lang.interpret import REFERENCE
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import MEANINGS
from shine.tensor.form.module import Function, Module, Value
from shine.tensor.form.operations import CALLS, FROM_THE_LANGUAGE, OPERATIONS
from shine.tensor.form.types import DTYPES, FLOATS, INTEGERS, TensorType

WIDEST = 2.0
"""Floats of arguments lie between -WIDEST and WIDEST."""

MODERATE = 30.0
"""Largest size of the floats in a module: a result that may exceed it is scaled."""

MOST_ELEMENTS = 400
"""Elements of a tensor."""

SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17)
"""Sizes of axes; their odds."""

STEPS = frozenset({"floor", "ceil", "round", "sign", "mod", "floordiv", "eq", "ne", "lt", "le", "gt", "ge"})
"""Operations that jump: after sums in another order, they may give another result."""

SMOOTH = frozenset(OPERATIONS) - STEPS - {"sort", "top_k", "argmax", "argmin"}
"""Operations whose results change little with the order of sums."""

_DOMAINS: dict[tuple[str, int], tuple[float, float]] = {
    ("sqrt", 0): (0.1, 9),
    ("log", 0): (0.1, 9),
    ("asin", 0): (-0.9, 0.9),
    ("acos", 0): (-0.9, 0.9),
    ("tan", 0): (-1.2, 1.2),
    ("exp", 0): (-3, 3),
    ("sinh", 0): (-3, 3),
    ("cosh", 0): (-3, 3),
    ("div", 1): (0.5, 3),
    ("floordiv", 1): (0.5, 3),
    ("mod", 1): (0.5, 3),
    ("pow", 0): (0.3, 3),
    ("pow", 1): (-3, 3),
    ("mul", 0): (-5, 5),
    ("mul", 1): (-5, 5),
    ("reduce_prod", 0): (0.8, 1.2),
}
"""Operands of floats that need bounds of their own, and the bounds."""

Bounds = tuple[float, float]


def random_module(
    seed: int,
    *,
    operations: Collection[str] | None = None,
    floats: Collection[str] | None = None,
    functions: bool = True,
    size: int = 12,
) -> Module:
    """A valid module whose function `@main` has at least one result.

    Parameters
    ----------
    seed : int
    operations : collection of str, optional
        Operations to draw from; default all. Constants, and `mul` and `add` that keep values moderate, come with them.
    floats : collection of str, optional
        Element types of parameters and constants, "f32" or "f64" or both; other elements then appear only as indices,
        as conditions, and where an operation gives them. Default: all element types.
    functions : bool
        Whether operations may call functions.
    size : int
        Instructions to draw for `@main`, without those that prepare operands.
    """
    rng = np.random.default_rng(seed)
    allowed = set(OPERATIONS if operations is None else operations)
    unknown = allowed - OPERATIONS.keys()
    assert not unknown, f"there are no operations {unknown}"
    if not functions:
        allowed -= CALLS
    world = _World(rng, sorted(allowed), tuple(sorted(floats or DTYPES)))
    main = world.function("main", size)
    labels = {main.parameters[0].name: 'a "strange"/näme:0\n'} if main.parameters else {}
    return Module(f"random{seed}", {f.name: f for f in (*world.functions, main)}, labels)


def random_arguments(module: Module, name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Arguments of a function: floats from -2 to 2, integers from -9 to 9 (or 0 to 9)."""
    rng = np.random.default_rng(seed)
    return tuple(_array(rng, type) for type in module.functions[name].parameter_types)


def _array(rng: Generator, type: TensorType) -> np.ndarray:
    if type.dtype == "bool":
        return np.asarray(rng.random(type.shape) < 0.5)
    if type.dtype in FLOATS:
        return np.asarray(rng.uniform(-WIDEST, WIDEST, type.shape)).astype(type.numpy)
    return np.asarray(rng.integers(0 if type.dtype == "u8" else -9, 10, type.shape)).astype(type.numpy)


class _World:
    """What all functions of a module share."""

    def __init__(self, rng: Generator, allowed: Sequence[str], dtypes: Sequence[str]) -> None:
        self.rng, self.allowed, self.dtypes = rng, allowed, dtypes
        # Few sizes and types in a module, so that many values fit together.
        self.sizes = (1, *rng.choice(SIZES, 3))
        if len(dtypes) > 3:
            self.dtypes = sorted({str(rng.choice(sorted(FLOATS))), *map(str, rng.choice(dtypes, 3))})
        self.functions: list[Function] = []
        self.callable: list[Function] = []

    def signature(self, name: str) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
        found = {f.name: f for f in self.functions}[name]
        return found.parameter_types, found.result_types

    def function(
        self,
        name: str,
        size: int,
        parameters: Sequence[TensorType] | None = None,
        results: Sequence[TensorType] | None = None,
    ) -> Function:
        """A new function; parameters that are given are the only ones, and the results then stay within WIDEST."""
        drawing = _Drawing(self, name, parameters, calls=name == "main")
        made = 0
        for _ in range(10 * size):
            made += drawing.draw()
            if made >= size:
                break
        return drawing.done(results)

    def helper(
        self, size: int, parameters: Sequence[TensorType] | None = None, results: Sequence[TensorType] | None = None
    ) -> Function:
        """A new function for others to call."""
        self.functions.append(self.function(f"helper{len(self.functions)}", size, parameters, results))
        return self.functions[-1]


class _Drawing:
    """A function in the making: its values and their bounds."""

    def __init__(self, world: _World, name: str, parameters: Sequence[TensorType] | None, calls: bool) -> None:
        self.world, self.rng = world, world.rng
        self.builder = FunctionBuilder(name, world.signature)
        self.parameters: list[Value] = []
        self.pool: list[Value] = []
        self.bounds: dict[Value, Bounds] = {}
        self.is_open = parameters is None
        self.allowed = [name for name in world.allowed if calls or name not in CALLS]
        for type in parameters or ():
            self.parameter(type)

    def draw(self) -> bool:
        """Add an instruction of a random operation, or none if what was drawn does not fit."""
        if not self.allowed:
            return False
        name = self.allowed[self.rng.integers(len(self.allowed))]
        try:
            (_elementwise if name in FROM_THE_LANGUAGE else _DRAWS[name])(self, name)
        except (_Unfit, FormError):
            return False
        return True

    def done(self, types: Sequence[TensorType] | None) -> Function:
        if types is not None:
            return self.builder.done(*(self.value(type, (-WIDEST, WIDEST)) for type in types))
        if not self.is_open:
            return self.builder.done(*(self.operand(domain=(-WIDEST, WIDEST)) for _ in range(self.rng.integers(1, 4))))
        self.operand()
        made = [value for value in self.pool if value not in self.parameters] or self.pool
        last = made[-1 - int(self.rng.integers(min(3, len(made)))) :]
        others = [self.pool[i] for i in self.rng.integers(len(self.pool), size=int(self.rng.choice((0, 0, 1, 2))))]
        return self.builder.done(*last, *others)

    # Values.

    def parameter(self, type: TensorType) -> Value:
        self.parameters.append(self.builder.parameter(f"x{len(self.parameters)}", type))
        return self.keep(self.parameters[-1], (-WIDEST, WIDEST))

    def keep(self, value: Value, bounds: Bounds) -> Value:
        """Note a value for later operands; wide floats are scaled."""
        self.bounds[value] = bounds
        widest = max(map(abs, bounds))
        if value.type.dtype in FLOATS and widest > MODERATE:
            value = self.affine(value, (-WIDEST, WIDEST))
        self.pool.append(value)
        return value

    def emit(self, name: str, operands: Sequence[Value], bounds: Bounds, **attributes: object) -> Value:
        if not all(map(math.isfinite, bounds)):
            raise _Unfit
        values = self.builder.emit(name, operands, **attributes)
        if values[0].type.elements > MOST_ELEMENTS:
            # It stays as dead code.
            raise _Unfit
        for value in values[1:]:
            self.keep(value, bounds)
        return self.keep(values[0], bounds)

    def affine(self, value: Value, domain: Bounds) -> Value:
        """A value moved into a domain, if it is not there."""
        (low, high), (least, most) = self.bounds[value], domain
        if least <= low and high <= most:
            return value
        scale = (most - least) / max(high - low, 1e-3)
        value = self.builder.mul(value, self.builder.like(value, scale))
        value = self.builder.add(value, self.builder.like(value, least - low * scale))
        self.bounds[value] = least, most
        return value

    def value(self, type: TensorType, domain: Bounds | None = None) -> Value:
        """A value of a type: one that there is, a new parameter, or a constant."""
        fitting = [value for value in self.pool if value.type == type]
        choice = self.rng.random()
        if fitting and choice < 0.7:
            found = fitting[self.rng.integers(len(fitting))]
        elif self.is_open and choice < 0.9 and (type.dtype in self.world.dtypes or type.dtype == "bool"):
            found = self.parameter(type)
        elif (source := self.largest(type.dtype)) is not None:
            found = self.builder.add(source, self.builder.constant(_array(self.rng, type)))
            self.bounds[found] = self.bounds[source][0] - WIDEST, self.bounds[source][1] + WIDEST
            found = self.keep(found, self.bounds[found])
        else:
            found = self.keep(self.builder.constant(_array(self.rng, type)), (-WIDEST, WIDEST))
        return self.affine(found, domain) if domain and type.dtype in FLOATS else found

    def largest(self, dtype: str) -> Value | None:
        """The largest element of a value, so that what is made with it depends on the parameters."""
        fitting = [v for v in self.pool if v.type.dtype == dtype and v.type.elements]
        if not fitting or dtype not in FLOATS or "reduce_max" not in self.allowed:
            return None
        found = fitting[-1]
        return found if not found.type.rank else self.emit("reduce_max", [found], self.bounds[found])

    def operand(self, elements: Collection[str] | None = None, least: int = 0, domain: Bounds | None = None) -> Value:
        """Any value of some element types and at least a rank."""
        dtypes = [d for d in self.world.dtypes if elements is None or d in elements]
        fitting = [v for v in self.pool if v.type.rank >= least and (elements is None or v.type.dtype in elements)]
        if fitting and self.rng.random() < 0.75:
            found = fitting[self.rng.integers(len(fitting))]
            return self.affine(found, domain) if domain and found.type.dtype in FLOATS else found
        if not dtypes:
            raise _Unfit
        return self.value(self.type(dtypes, least), domain)

    def type(self, dtypes: Sequence[str], least: int = 0) -> TensorType:
        rank = max(least, int(self.rng.choice(5, p=(0.2, 0.25, 0.35, 0.15, 0.05))))
        dtype = str(dtypes[self.rng.integers(len(dtypes))])
        shapes = [value.type.shape for value in self.pool if value.type.rank >= least]
        if shapes and self.rng.random() < 0.6:
            return TensorType(dtype, shapes[self.rng.integers(len(shapes))])
        while True:
            shape = self.sizes(rank)
            if math.prod(shape) <= MOST_ELEMENTS:
                return TensorType(dtype, shape)

    def sizes(self, rank: int) -> tuple[int, ...]:
        return tuple(int(size) for size in self.rng.choice(self.world.sizes, rank))

    def axis(self, value: Value) -> int:
        return int(self.rng.integers(value.type.rank))

    def flag(self) -> bool:
        return bool(self.rng.random() < 0.5)

    def partner(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with another one."""
        choice = self.rng.random()
        if choice < 0.4:
            return shape
        found = tuple(1 if self.rng.random() < 0.4 else size for size in shape)
        return found[int(self.rng.integers(len(found) + 1)) :] if choice < 0.8 else found


class _Unfit(Exception):
    """What was drawn does not fit."""


def _grid(bounds: Sequence[Bounds], meaning: Callable[..., np.ndarray]) -> Bounds:
    """Bounds of a function of floats, from its values on a grid."""
    lines = [np.linspace(*pair, 33) for pair in bounds]
    with np.errstate(all="ignore"):
        values = meaning(*np.meshgrid(*lines))
    return float(np.min(values)), float(np.max(values))


def _elementwise(d: _Drawing, name: str) -> None:
    operation = OPERATIONS[name]
    first = d.operand(operation.elements, domain=_DOMAINS.get((name, 0)))
    operands = [first]
    if operation.operands == 2:
        other = TensorType(first.type.dtype, d.partner(first.type.shape))
        operands.append(d.value(other, _DOMAINS.get((name, 1))))
        if (name, 0) not in _DOMAINS and (name, 1) not in _DOMAINS and d.flag():
            operands.reverse()
    bounds = (0.0, 1.0)
    if first.type.dtype in FLOATS:
        bounds = _grid([d.bounds[v] for v in operands], REFERENCE.get(name) or MEANINGS[name])
    d.emit(name, operands, bounds)


def _logic(d: _Drawing, name: str) -> None:
    first = d.operand({"bool"}) if "bool" in d.world.dtypes else d.value(d.type(["bool"]))
    if name == "not":
        d.emit(name, [first], (0, 1))
        return
    d.emit(name, [first, d.value(TensorType("bool", d.partner(first.type.shape)))], (0, 1))


def _select(d: _Drawing, name: str) -> None:
    first = d.operand()
    other = d.value(TensorType(first.type.dtype, d.partner(first.type.shape)))
    condition = d.value(TensorType("bool", d.partner(first.type.shape)))
    d.emit(name, [condition, first, other], _union(d, first, other))


def _union(d: _Drawing, *values: Value) -> Bounds:
    return min(d.bounds[v][0] for v in values), max(d.bounds[v][1] for v in values)


def _cast(d: _Drawing, name: str) -> None:
    dtype = str(d.rng.choice(d.world.dtypes))
    source = d.operand()
    bounds = d.bounds[source]
    if source.type.dtype in INTEGERS:
        # Nothing is known of integers.
        limit = 2.0 ** (8 * source.type.numpy.itemsize)
        bounds = -limit, limit
    elif source.type.dtype == "bool":
        bounds = 0, 1
    d.emit(name, [source], bounds, dtype=dtype)


def _constant(d: _Drawing, name: str) -> None:
    array = _array(d.rng, d.type(d.world.dtypes))
    array.flags.writeable = False
    d.emit(name, [], (-WIDEST, WIDEST), value=array)


def _broadcast(d: _Drawing, name: str) -> None:
    source = d.operand()
    inside = tuple(int(d.rng.integers(4)) if size == 1 and d.flag() else size for size in source.type.shape)
    d.emit(name, [source], d.bounds[source], shape=(*d.sizes(int(d.rng.integers(2))), *inside))


def _reshape(d: _Drawing, name: str) -> None:
    source = d.operand()
    left, shape = source.type.elements, []
    for factor in (2, 3, 5, 7, 17):
        while left and left % factor == 0 and d.flag():
            left //= factor
            shape.append(factor)
    shape += [left] if left != 1 or d.flag() else []
    d.rng.shuffle(shape)
    d.emit(name, [source], d.bounds[source], shape=tuple(map(int, shape)))


def _transpose(d: _Drawing, name: str) -> None:
    source = d.operand()
    order = tuple(int(axis) for axis in d.rng.permutation(source.type.rank))
    d.emit(name, [source], d.bounds[source], permutation=order)


def _slice(d: _Drawing, name: str) -> None:
    source = d.operand()
    ends = [sorted(int(end) for end in d.rng.integers(size + 1, size=2)) for size in source.type.shape]
    start = tuple(0 if d.flag() else a for a, _ in ends)
    stop = tuple(size if d.flag() else b for (_, b), size in zip(ends, source.type.shape, strict=True))
    step = tuple(int(d.rng.choice((1, 1, 2, 3))) for _ in ends)
    d.emit(name, [source], d.bounds[source], start=start, stop=stop, step=step)


def _pad(d: _Drawing, name: str) -> None:
    source = d.operand()
    filling = d.value(TensorType(source.type.dtype))
    low, high, interior = (
        tuple(int(n) for n in d.rng.choice((0, 0, 1, 2), source.type.rank)) for _ in range(3)
    )  # fmt: skip
    if d.flag():
        interior = (0,) * source.type.rank
    d.emit(name, [source, filling], _union(d, source, filling), low=low, high=high, interior=interior)


def _concatenate(d: _Drawing, name: str) -> None:
    first = d.operand(least=1)
    axis, parts = d.axis(first), [first]
    for _ in range(int(d.rng.integers(3))):
        shape = list(first.type.shape)
        shape[axis] = d.sizes(1)[0]
        parts.append(d.value(first.type.with_shape(shape)))
    d.emit(name, parts, _union(d, *parts), axis=axis)


def _indices(d: _Drawing) -> Value:
    """Some are outside of the axis."""
    integers = [dtype for dtype in d.world.dtypes if dtype in INTEGERS] or ["i32", "i64"]
    shape = d.sizes(int(d.rng.integers(3)))
    return d.value(TensorType(str(d.rng.choice(integers)), shape if math.prod(shape) < 40 else (3,)))


def _gather(d: _Drawing, name: str) -> None:
    source = d.operand(least=1)
    d.emit(name, [source, _indices(d)], d.bounds[source], axis=d.axis(source))


def _scatter_add(d: _Drawing, name: str) -> None:
    source, indices = d.operand(OPERATIONS[name].elements, least=1), _indices(d)
    axis = d.axis(source)
    before, after = source.type.shape[:axis], source.type.shape[axis + 1 :]
    slices = d.value(source.type.with_shape(before + indices.type.shape + after))
    most = max(map(abs, d.bounds[source])) + indices.type.elements * max(map(abs, d.bounds[slices]))
    d.emit(name, [source, indices, slices], (-most, most), axis=axis)


def _reduction(d: _Drawing, name: str) -> None:
    source = d.operand(OPERATIONS[name].elements, domain=_DOMAINS.get((name, 0)))
    axes = tuple(axis for axis in range(source.type.rank) if d.rng.random() < 0.6)
    count = math.prod(source.type.shape[axis] for axis in axes)
    low, high = d.bounds[source]
    bounds = low, high
    if source.type.dtype in FLOATS and name == "reduce_sum":
        bounds = min(count * low, 0), max(count * high, 0)
    elif source.type.dtype in FLOATS and name == "reduce_prod":
        if count > 20:
            raise _Unfit
        bounds = min(low**count, 1), max(high**count, 1)
    d.emit(name, [source], bounds, axes=axes, keep=d.flag())


def _arg_reduction(d: _Drawing, name: str) -> None:
    source = d.operand(OPERATIONS[name].elements, least=1)
    d.emit(name, [source], (0, 0), axis=d.axis(source))


def _sort(d: _Drawing, name: str) -> None:
    source = d.operand(OPERATIONS[name].elements, least=1)
    d.emit(name, [source], d.bounds[source], axis=d.axis(source), descending=d.flag())


def _top_k(d: _Drawing, name: str) -> None:
    source = d.operand(OPERATIONS[name].elements, least=1)
    d.emit(name, [source], d.bounds[source], k=int(d.rng.integers(source.type.shape[-1] + 1)))


def _dot(d: _Drawing, name: str) -> None:
    left = d.operand(OPERATIONS[name].elements, least=1)
    inner, stack = left.type.shape[-1], left.type.shape[:-2]
    shape = (inner,) if d.rng.random() < 0.3 else (*d.partner(stack), inner, d.sizes(1)[0])
    right = d.value(left.type.with_shape(shape))
    most = inner * max(map(abs, d.bounds[left])) * max(map(abs, d.bounds[right]))
    if left.type.dtype not in FLOATS:
        most = 1.0
    d.emit(name, [left, right], (-most, most))


def _convolve(d: _Drawing, name: str) -> None:
    space, r = int(d.rng.integers(1, 3)), d.rng
    dtypes = sorted(FLOATS & set(d.world.dtypes)) or sorted(FLOATS)
    groups, channels, filters = (int(r.integers(1, 4)) for _ in range(3))
    kernel = tuple(int(size) for size in r.integers(1, 4, space))
    strides, dilation = (tuple(int(n) for n in r.choice((1, 1, 2, 3), space)) for _ in range(2))
    low, high = (tuple(int(n) for n in r.integers(0, 3, space)) for _ in range(2))
    sizes = tuple(int(n) for n in r.choice((0, 1, 3, 4, 5, 7) if space == 2 else (0, 1, 4, 9, 16), space))
    dtype, batch = str(r.choice(dtypes)), int(r.choice((0, 1, 1, 2)))
    image = d.value(TensorType(dtype, (batch, *sizes, groups * channels)), (-WIDEST, WIDEST))
    weights = d.value(TensorType(dtype, (*kernel, channels, groups * filters)), (-WIDEST, WIDEST))
    most = channels * math.prod(kernel) * WIDEST**2
    d.emit(name, [image, weights], (-most, most), strides=strides, low=low, high=high, dilation=dilation, groups=groups)


def _call(d: _Drawing, name: str) -> None:
    found = d.world.callable[d.rng.integers(len(d.world.callable))] if d.world.callable and d.flag() else None
    if found is None:
        found = d.world.helper(int(d.rng.integers(1, 5)), [d.type(d.world.dtypes) for _ in range(d.rng.integers(1, 4))])
        d.world.callable.append(found)
    _called(d, name, [], found.parameter_types, function=found.name)


def _cond(d: _Drawing, name: str) -> None:
    types = [d.type(d.world.dtypes) for _ in range(int(d.rng.integers(1, 3)))]
    one = d.world.helper(int(d.rng.integers(1, 5)), types)
    other = d.world.helper(int(d.rng.integers(1, 5)), types, one.result_types)
    _called(d, name, [d.value(TensorType("bool"))], types, true=one.name, false=other.name)


def _while(d: _Drawing, name: str) -> None:
    """A counter that ends the loop, and values that the body changes."""
    counter = TensorType(str(d.rng.choice(("i8", "i32", "i64"))))
    types = [d.type(d.world.dtypes) for _ in range(int(d.rng.integers(1, 3)))]
    times = int(d.rng.integers(0, 4))
    number = len(d.world.functions)
    step = d.world.helper(3, types, types)
    condition = FunctionBuilder(f"condition{number}")
    count, *_ = (condition.parameter(f"s{i}", type) for i, type in enumerate((counter, *types)))
    body = FunctionBuilder(f"body{number}", d.world.signature)
    state = [body.parameter(f"s{i}", type) for i, type in enumerate((counter, *types))]
    after = body.emit("call", state[1:], function=step.name)
    d.world.functions += [
        condition.done(condition.lt(count, condition.like(count, times))),
        body.done(body.add(state[0], body.like(state[0], 1)), *after),
    ]
    start = d.builder.constant(0, counter.dtype)
    _called(d, name, [start], types, condition=f"condition{number}", body=f"body{number}")


def _called(d: _Drawing, name: str, first: list[Value], types: Sequence[TensorType], **functions: str) -> None:
    arguments = [d.value(type, (-WIDEST, WIDEST)) for type in types]
    for value in d.builder.emit(name, [*first, *arguments], **functions):
        d.keep(value, (-WIDEST, WIDEST))


_DRAWS: dict[str, Callable[[_Drawing, str], None]] = {
    "round": _elementwise,
    "and": _logic,
    "or": _logic,
    "not": _logic,
    "select": _select,
    "cast": _cast,
    "constant": _constant,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _gather,
    "scatter_add": _scatter_add,
    "reduce_sum": _reduction,
    "reduce_prod": _reduction,
    "reduce_max": _reduction,
    "reduce_min": _reduction,
    "argmax": _arg_reduction,
    "argmin": _arg_reduction,
    "sort": _sort,
    "top_k": _top_k,
    "dot": _dot,
    "convolve": _convolve,
    "call": _call,
    "cond": _cond,
    "while": _while,
}
"""How to draw an instruction of each operation that is not the language's."""
