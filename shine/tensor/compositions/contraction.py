"""Sums of products by labels of axes, as transposes, reshapes and matrix products: NumPy's `einsum`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from shine.base.errors import FormError
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value


@dataclass(frozen=True)
class _Labelled:
    """A value and a label for each of its axes, all different."""

    value: Value
    labels: tuple[str, ...]

    def size(self, label: str) -> int:
        return self.value.type.shape[self.labels.index(label)]


def einsum(b: FunctionBuilder, equation: str, *operands: Value) -> Value:
    """A sum of products; a `FormError` if the equation does not fit.

    Parameters
    ----------
    b : FunctionBuilder
    equation : str
        Such as "bij,bjk->bik": a letter for each axis of each operand, and those of the result. Letters that the result
        lacks are summed over; `...` stands for any axes, which are broadcast. Without `->` the result has, in order of
        the alphabet, the letters that occur once.
    operands : Value
        They are multiplied from left to right.
    """
    inputs, result = _labels(equation, operands)
    wanted = Counter(label for labels in inputs for label in set(labels)) + Counter(set(result))
    parts = [_diagonal(b, value, labels) for value, labels in zip(operands, inputs, strict=True)]
    parts = _broadcast(b, parts, equation)
    total = parts[0]
    for part in parts[1:]:
        wanted -= Counter(total.labels) + Counter(part.labels)
        total = _product(b, total, part, {label for label, count in wanted.items() if count > 0})
        wanted += Counter(total.labels)
    total = _summed(b, total, set(result))
    order = tuple(total.labels.index(label) for label in result)
    return b.emit("transpose", [total.value], permutation=order)[0]


def _labels(equation: str, operands: Sequence[Value]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Labels of the axes of the operands and of the result; axes of `...` are numbered from the last."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise FormError(f"einsum {equation!r} has {len(terms)} operands, and {len(operands)} are given")
    inputs = []
    for term, operand in zip(terms, operands, strict=True):
        others = operand.type.rank - len(term.replace("...", ""))
        inputs.append(_spread(term, others, equation))
        if len(inputs[-1]) != operand.type.rank:
            raise FormError(f"einsum {equation!r}: {term!r} does not fit {operand.type}")
    dots = max((sum(label.isdigit() for label in labels) for labels in inputs), default=0)
    once = Counter(label for labels in inputs for label in labels)
    implied = ("..." if dots else "") + "".join(
        sorted(label for label, n in once.items() if n == 1 and not label.isdigit())
    )
    result = _spread(right if arrow else implied, dots, equation)
    missing = sorted(set(result) - set(once))
    if missing or len(set(result)) != len(result):
        raise FormError(f"einsum {equation!r}: the result has {missing or 'a letter twice'}")
    return inputs, result


def _spread(term: str, others: int, equation: str) -> tuple[str, ...]:
    before, dots, after = term.partition("...")
    letters = before + after
    if not ((letters.isascii() and letters.isalpha()) or not letters):
        raise FormError(f"einsum {equation!r}: {term!r} must be letters, with `...` once at most")
    return (*before, *(map(str, reversed(range(max(others, 0)))) if dots else ()), *after)


def _diagonal(b: FunctionBuilder, value: Value, labels: tuple[str, ...]) -> _Labelled:
    """A value without repeated labels: the diagonal of n x n elements is every (n + 1)th of them."""
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = [i for i in range(len(labels)) if i not in (first, second)]
            value = b.emit("transpose", [value], permutation=(*rest, first, second))[0]
            *others, n, m = value.type.shape
            if n != m:
                raise FormError(f"einsum: the axes {label!r} have sizes {n} and {m}")
            value = b.emit("reshape", [value], shape=(*others, n * n))[0]
            zeros, step = (0,) * len(value.type.shape), (*[1] * len(others), n + 1)
            value = b.emit("slice", [value], start=zeros, stop=value.type.shape, step=step)[0]
            labels = (*(labels[i] for i in rest), label)
    return _Labelled(value, labels)


def _broadcast(b: FunctionBuilder, parts: Sequence[_Labelled], equation: str) -> list[_Labelled]:
    """Axes of size 1 stretched to the size that other operands have for the same label."""
    sizes: dict[str, int] = {}
    for part in parts:
        for label in part.labels:
            size = part.size(label)
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            if size not in (1, sizes[label]):
                raise FormError(f"einsum {equation!r}: the axes {label!r} have sizes {sizes[label]} and {size}")
    stretched = []
    for part in parts:
        shape = tuple(sizes[label] for label in part.labels)
        same = shape == part.value.type.shape
        stretched.append(part if same else _Labelled(b.emit("broadcast", [part.value], shape=shape)[0], part.labels))
    return stretched


def _summed(b: FunctionBuilder, part: _Labelled, wanted: set[str]) -> _Labelled:
    """Without the axes that nobody wants."""
    axes = tuple(i for i, label in enumerate(part.labels) if label not in wanted)
    if not axes:
        return part
    value = b.emit("reduce_sum", [part.value], axes=axes)[0]
    return _Labelled(value, tuple(label for label in part.labels if label in wanted))


def _product(b: FunctionBuilder, left: _Labelled, right: _Labelled, wanted: set[str]) -> _Labelled:
    """The product of two, summed over the labels that nobody else wants."""
    left = _summed(b, left, wanted | set(right.labels))
    right = _summed(b, right, wanted | set(left.labels))
    both = [label for label in left.labels if label in right.labels]
    batch, inner = [x for x in both if x in wanted], [x for x in both if x not in wanted]
    rows = [label for label in left.labels if label not in both]
    columns = [label for label in right.labels if label not in both]
    a = _matrix(b, left, batch, rows, inner)
    c = _matrix(b, right, batch, inner, columns)
    sizes = [left.size(label) for label in (*batch, *rows)] + [right.size(label) for label in columns]
    value = b.emit("reshape", [b.dot(a, c)], shape=tuple(sizes))[0]
    return _Labelled(value, (*batch, *rows, *columns))


def _matrix(b: FunctionBuilder, part: _Labelled, batch: list[str], rows: list[str], columns: list[str]) -> Value:
    """A stack of matrices, or a matrix if there is no batch."""
    order = tuple(part.labels.index(label) for label in (*batch, *rows, *columns))
    value = b.emit("transpose", [part.value], permutation=order)[0]
    m, n = (math.prod(part.size(label) for label in labels) for labels in (rows, columns))
    shape = (*(part.size(label) for label in batch), m, n)
    return b.emit("reshape", [value], shape=shape)[0]
