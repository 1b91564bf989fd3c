"""Types of results, one rule for each sort of operation: types of operands and attributes -> types of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from shine.base.errors import FormError
from shine.tensor.form.module import Attribute
from shine.tensor.form.types import DTYPES, INTEGERS, TensorType, broadcast, type_of

Types: TypeAlias = tuple[TensorType, ...]
Attributes: TypeAlias = Mapping[str, Attribute]
Signature: TypeAlias = tuple[Types, Types]
SignatureOf: TypeAlias = Callable[[str], Signature]
"""Types of the parameters and of the results of a function of the module."""

Rule: TypeAlias = Callable[[Types, Attributes, SignatureOf], Types]


def elementwise(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Equal elements in, the same out; NumPy's broadcasting."""
    return (TensorType(_same_dtype(types), broadcast([t.shape for t in types])),)


def comparison(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Equal elements in, truth out."""
    (found,) = elementwise(types, attributes, signature_of)
    return (found.with_dtype("bool"),)


def select(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """A condition and two values."""
    condition, *values = types
    _demand(condition.dtype == "bool", f"the condition has elements {condition.dtype}; they must be bool")
    return (TensorType(_same_dtype(values), broadcast([t.shape for t in types])),)


def constant(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """The type of the array."""
    value: Any = attributes["value"]
    return (type_of(value),)


def cast(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Other elements."""
    dtype = str(attributes["dtype"])
    _demand(dtype in DTYPES, f"there is no element type {dtype!r}; there are {', '.join(DTYPES)}")
    return (types[0].with_dtype(dtype),)


def broadcast_to(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """A shape that the operand's can be broadcast to."""
    found = types[0].with_shape(_sizes(attributes, "shape"))
    if broadcast([types[0].shape, found.shape]) != found.shape:
        raise FormError(f"the shape {list(types[0].shape)} cannot be broadcast to {list(found.shape)}")
    return (found,)


def reshape(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """A shape of as many elements."""
    found = types[0].with_shape(_sizes(attributes, "shape"))
    _demand(
        found.elements == types[0].elements,
        f"{list(types[0].shape)} has {types[0].elements} elements, and {list(found.shape)} has {found.elements}",
    )
    return (found,)


def transpose(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Axes in another order: axis i of the result is axis permutation[i] of the operand."""
    permutation = _sizes(attributes, "permutation")
    _demand(
        sorted(permutation) == list(range(types[0].rank)),
        f"permutation = {list(permutation)} must contain each of the {types[0].rank} axes once",
    )
    return (types[0].with_shape([types[0].shape[axis] for axis in permutation]),)


def slice_(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Elements start, start + step, ... before stop, on each axis."""
    start, stop, step = (_each_axis(types[0], attributes, name) for name in ("start", "stop", "step"))
    for axis, (first, last, by, size) in enumerate(zip(start, stop, step, types[0].shape, strict=True)):
        _demand(
            0 <= first <= last <= size and by > 0,
            f"axis {axis} of size {size} has no elements {first}:{last}:{by}; 0 <= start <= stop <= size and step > 0",
        )
    return (types[0].with_shape([-(-(b - a) // by) for a, b, by in zip(start, stop, step, strict=True)]),)


def pad(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Copies of a scalar before, after and between the elements of each axis."""
    _demand(types[1] == TensorType(types[0].dtype), f"the padding must be a scalar {types[0].dtype}, not {types[1]}")
    low, high, interior = (_each_axis(types[0], attributes, name) for name in ("low", "high", "interior"))
    _demand(min([*low, *high, *interior], default=0) >= 0, "low, high and interior must be at least 0")
    sizes = [
        size + max(size - 1, 0) * between + before + after
        for size, before, after, between in zip(types[0].shape, low, high, interior, strict=True)
    ]
    return (types[0].with_shape(sizes),)


def concatenate(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Tensors one after the other along an axis."""
    axis = _axis(types[0], attributes)
    _same_dtype(types)
    for one, other in pairwise(types):
        same = one.rank == other.rank and all(
            a == b for i, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if i != axis
        )
        _demand(same, f"{one} and {other} differ in more than axis {axis}")
    shape = list(types[0].shape)
    shape[axis] = sum(t.shape[axis] for t in types)
    return (types[0].with_shape(shape),)


def gather(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """The slices of an axis that indices name, in the place of that axis."""
    axis = _axis(types[0], attributes)
    _index(types[1])
    _demand(types[0].shape[axis] > 0 or types[1].elements == 0, f"axis {axis} of {types[0]} has no elements")
    return (types[0].with_shape(types[0].shape[:axis] + types[1].shape + types[0].shape[axis + 1 :]),)


def scatter_add(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Slices added to those of an axis that indices name: the adjoint of `gather`."""
    (needed,) = gather(types[:2], attributes, signature_of)
    _demand(types[2] == needed, f"the slices to add are {types[2]} and must be {needed}")
    return (types[0],)


def reduction(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Without the axes, or with size 1 in their places."""
    axes, kept = _sizes(attributes, "axes"), bool(attributes["keep"])
    inside = all(0 <= axis < types[0].rank for axis in axes)
    _demand(inside and list(axes) == sorted(set(axes)), f"axes = {list(axes)} of {types[0]}: ascending, each once")
    shape = [1 if i in axes else size for i, size in enumerate(types[0].shape) if kept or i not in axes]
    return (types[0].with_shape(shape),)


def extremum(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """As `reduction`, of axes that are not empty."""
    found = reduction(types, attributes, signature_of)
    empty = [axis for axis in _sizes(attributes, "axes") if types[0].shape[axis] == 0]
    _demand(not empty, f"axes {empty} of {types[0]} are empty and have no extremum")
    return found


def arg_reduction(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """An index for each line along an axis."""
    axis = _axis(types[0], attributes)
    _demand(types[0].shape[axis] > 0, f"axis {axis} of {types[0]} is empty and has no extremum")
    return (TensorType("i64", types[0].shape[:axis] + types[0].shape[axis + 1 :]),)


def sort(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Sorted values and where each was."""
    _axis(types[0], attributes)
    return types[0], types[0].with_dtype("i64")


def top_k(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """The largest values of the last axis, and where each was."""
    k: Any = attributes["k"]
    _demand(types[0].rank > 0, "top_k needs an axis, not a scalar")
    _demand(0 <= k <= types[0].shape[-1], f"k = {k} must be 0 to {types[0].shape[-1]}")
    found = types[0].with_shape([*types[0].shape[:-1], k])
    return found, found.with_dtype("i64")


def dot(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """NumPy's matrix product: vectors, matrices, and stacks of matrices."""
    left, right = types
    dtype = _same_dtype(types)
    _demand(left.rank > 0 and right.rank > 0, f"dot of {left} and {right}: neither may be a scalar")
    a = left.shape if left.rank > 1 else (1, *left.shape)
    b = right.shape if right.rank > 1 else (*right.shape, 1)
    _demand(a[-1] == b[-2], f"dot of {left} and {right}: the inner sizes {a[-1]} and {b[-2]} differ")
    matrix = [*([a[-2]] if left.rank > 1 else []), *([b[-1]] if right.rank > 1 else [])]
    return (TensorType(dtype, (*broadcast([a[:-2], b[:-2]]), *matrix)),)


def convolve(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Batch x space x channels with space x (channels / groups) x filters; correlation, as networks define it."""
    image, kernel = types
    dtype, space, groups = _same_dtype(types), image.rank - 2, attributes["groups"]
    _demand(space in (1, 2) and kernel.rank == image.rank, f"{image} and {kernel}: both need rank 3 or both rank 4")
    _demand(
        isinstance(groups, int)
        and groups > 0
        and image.shape[-1] == kernel.shape[-2] * groups
        and kernel.shape[-1] % groups == 0,
        f"{image.shape[-1]} channels and {kernel.shape[-1]} filters in {groups} groups do not fit a kernel of "
        f"{kernel.shape[-2]} channels",
    )
    names = ("strides", "dilation", "low", "high")
    strides, dilation, low, high = (_sizes(attributes, name) for name in names)
    for name, given, least in zip(names, (strides, dilation, low, high), (1, 1, 0, 0), strict=True):
        _demand(
            len(given) == space and min(given) >= least,
            f"{name} = {list(given)}: {space} numbers are needed, at least {least}",
        )
    padded = [size + a + b for size, a, b in zip(image.shape[1:-1], low, high, strict=True)]
    wide = [(size - 1) * by + 1 for size, by in zip(kernel.shape[:space], dilation, strict=True)]
    _demand(min(kernel.shape[:space]) > 0, f"the kernel {kernel} is empty")
    sizes = [max((size - window) // by + 1, 0) for size, window, by in zip(padded, wide, strides, strict=True)]
    return (TensorType(dtype, (image.shape[0], *sizes, kernel.shape[-1])),)


def call(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Result types of the function."""
    return _called(str(attributes["function"]), types, signature_of)


def cond(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """Result types of both branches."""
    _demand(bool(types) and types[0] == TensorType("bool"), "the first operand must be a scalar bool")
    first, second = (_called(str(attributes[name]), types[1:], signature_of) for name in ("true", "false"))
    _demand(first == second, f"the branches return {_listed(first)} and {_listed(second)}; they must return the same")
    return first


def while_(types: Types, attributes: Attributes, signature_of: SignatureOf) -> Types:
    """The state of the loop."""
    condition = _called(str(attributes["condition"]), types, signature_of)
    _demand(condition == (TensorType("bool"),), f"the condition returns {_listed(condition)}, and not one scalar bool")
    body = _called(str(attributes["body"]), types, signature_of)
    _demand(body == types, f"the body returns {_listed(body)}; it must return the types of its parameters")
    return body


def _called(name: str, types: Types, signature_of: SignatureOf) -> Types:
    parameters, results = signature_of(name)
    _demand(parameters == types, f"@{name} takes {_listed(parameters)}, and is given {_listed(types)}")
    return results


def _listed(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise FormError(message)


def _same_dtype(types: Sequence[TensorType]) -> str:
    dtypes = {t.dtype for t in types}
    _demand(len(dtypes) == 1, f"elements {' and '.join(t.dtype for t in types)} are mixed; cast them first")
    return types[0].dtype


def _index(found: TensorType) -> None:
    _demand(found.dtype in INTEGERS, f"indices have elements {found.dtype}; they must be integers")


def _axis(operand: TensorType, attributes: Attributes) -> int:
    axis = attributes["axis"]
    if not isinstance(axis, int) or not 0 <= axis < operand.rank:
        raise FormError(f"axis = {axis}: {operand} has the axes 0 to {operand.rank - 1}")
    return axis


def _sizes(attributes: Attributes, name: str) -> tuple[int, ...]:
    found: Any = attributes[name]
    return tuple(found)


def _each_axis(operand: TensorType, attributes: Attributes, name: str) -> tuple[int, ...]:
    found = _sizes(attributes, name)
    _demand(len(found) == operand.rank, f"{name} = {list(found)} needs a number for each axis of {operand}")
    return found
