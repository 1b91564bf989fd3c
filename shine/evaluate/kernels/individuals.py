"""Native code that reads a population of sequences of numbers, and makes their fitness.

Python's own ways take several times as long as compiled code needs for the arithmetic. The function reads objects at
the offsets that CPython and NumPy promise to extension modules, which have them compiled in (`PyList_GET_ITEM`,
`PyFloat_AS_DOUBLE`). It holds the interpreter's lock while it reads, so no list changes.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, counted, declare, element_pointer, load, store
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import (
    COUNT,
    DATA,
    HEAD,
    ITEMS,
    RANK,
    SIZES,
    STEPS,
    TYPE,
    WORD,
    builtin,
    interpreter_function,
    is_readable,
)

Reader = Callable[[AnyArray, list[Any]], list[tuple[float, ...]] | Literal[False] | None]
"""``reader(words, individuals)`` fills the first rows of a matrix with elements of individuals, and evaluates them.

It returns the fitness of each; False if there is no kernel, or a value is not finite; None if the individuals differ in
type, length or number type, or an element is no number that it knows: then the rows are undefined.
"""

_BYTE, _I32, _DOUBLE = ir.IntType(8), ir.IntType(32), ir.DoubleType()
_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)

_FORMS = (list, tuple, array.array, np.ndarray)
_CHARACTERS = tuple(set(array.typecodes) - set("bBhHiIlLqQfd"))
_SCALARS = (float, np.float64, int, bool, np.int64)
_OF_PYTHON = {
    "PyLong_AsLongLongAndOverflow": (I64, POINTER, POINTER),
    "PyList_New": (POINTER, I64),
    "PyTuple_New": (POINTER, I64),
    "PyFloat_FromDouble": (POINTER, _DOUBLE),
    "Py_IncRef": (ir.VoidType(), POINTER),
    "Py_DecRef": (ir.VoidType(), POINTER),
    "PyEval_SaveThread": (POINTER,),
    "PyEval_RestoreThread": (ir.VoidType(), POINTER),
}
"""Functions that the code calls: result and arguments."""


def reader_of(individual: Any) -> Reader | None:
    """The function that reads individuals of this type; None if their layout is not known."""
    kind: Any = type(individual)
    return _reader(kind, getattr(individual, "dtype", None) or getattr(individual, "typecode", None))


def reading_words(individual: Any, matrix: AnyArray, call: Sequence[int] = (0,) * 9) -> AnyArray:
    """What a reader knows of this process: int64.

    Parameters
    ----------
    individual : sequence of float
        One of those that it will read.
    matrix : ndarray of shape (n_individuals, length), float64, contiguous
    call : sequence of int, optional
        Of a kernel for its rows: `PreparedCall.words`. By default no kernel is called.
    """
    element = id(getattr(individual, "dtype", None))
    if isinstance(individual, array.array):
        element = ctypes.c_int64.from_address(id(individual) + ITEMS + 2 * WORD).value
    own = (id(type(individual)), element, matrix.shape[1], matrix.ctypes.data, id(None), id(False))
    return np.array([*own, *map(id, _SCALARS), *map(interpreter_function, _OF_PYTHON), *call], np.int64)


@cache
def _reader(kind: Any, element: Any) -> Reader | None:
    form: Any = next((form for form in _FORMS if issubclass(kind, form)), None)
    # A subclass may yield other elements than those that it stores.
    is_plain = form is not None and kind.__iter__ is form.__iter__ and kind.__getitem__ is form.__getitem__
    if not is_plain or str(element) in _CHARACTERS:
        return None
    number = None if element is None else np.dtype(element)
    is_known = number is None or (number.isnative and (number.kind in "biu" or number.char in "fd"))
    if not is_known or not _has_known_layout():
        return None
    meaning = ("individuals", form.__name__, str(number), str(HEAD), source_digest("evaluate/kernels"))
    return builtin(Engine.kept(["individuals"], meaning, lambda: _code(form, number)), "individuals")


@cache
def _has_known_layout() -> bool:
    numbers: tuple[type, ...] = (float, np.float64, np.int64)
    are_plain = all(kind.__basicsize__ == HEAD + WORD for kind in numbers)
    return is_readable() and are_plain and list.__basicsize__ == HEAD + 3 * WORD


class _Builder(ir.IRBuilder):
    """A builder of the function, whose blocks end in `refused` if they must."""

    def __init__(self, function: ir.Function) -> None:
        super().__init__(function.append_basic_block("entry"))
        self.refused = function.append_basic_block("refused")

    def field(self, address: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
        return load(self, element_pointer(self, address, ir.Constant(I64, offset), _BYTE), _ZERO, kind, kind, WORD)

    def require(self, condition: ir.Value, otherwise: ir.Block | None = None) -> None:
        onward = self.append_basic_block()
        self.cbranch(condition, onward, otherwise or self.refused)
        self.position_at_end(onward)

    def same(self, one: ir.Value, *others: ir.Value) -> ir.Value:
        """Whether a number is one of others."""
        found = self.icmp_signed("==", one, others[0])
        for other in others[1:]:
            found = self.or_(found, self.icmp_signed("==", one, other))
        return found


def _code(form: type, number: np.dtype[Any] | None) -> str:
    """LLVM IR of ``object individuals(self, (words, individuals), count)``."""
    module = ir.Module(name="individuals")
    function = declare(module, "individuals", POINTER, [POINTER, POINTER, I64], ("self", "given", "count"))
    builder = _Builder(function)
    overflow = builder.alloca(_I32)
    overflow.type = POINTER
    given, population = (load(builder, function.args[1], place, POINTER, POINTER) for place in (_ZERO, _ONE))
    kernel_kind = FunctionPointer(ir.FunctionType(ir.VoidType(), [POINTER] * 5 + [I64]))
    functions = [FunctionPointer(ir.FunctionType(result, kinds)) for result, *kinds in _OF_PYTHON.values()]
    own = [I64, I64, I64, POINTER, POINTER, POINTER, *[I64] * len(_SCALARS), *functions]
    room = builder.field(given, DATA, POINTER)
    all_words = [*own, kernel_kind, *[POINTER] * 6, I64, I64]
    words = [builder.field(room, place * WORD, each) for place, each in enumerate(all_words)]
    kind, element, length, matrix, none, false = words[:6]
    scalars, (whole, new_list, new_tuple, new_float, increase, decrease, save, restore) = words[6:11], words[11:19]
    kernel, *tables, out, step, values = words[19:]

    rows, ones = builder.field(population, COUNT, I64), builder.field(population, ITEMS, POINTER)
    with counted(builder, _ZERO, rows) as row:
        one = load(builder, ones, row.index, POINTER, POINTER, WORD)
        builder.require(builder.same(builder.field(one, HEAD - WORD, I64), kind))
        size, data, stride = _elements(builder, form, one, element)
        builder.require(builder.same(size, length))
        target = element_pointer(builder, matrix, builder.mul(row.index, length), _DOUBLE)
        with counted(builder, _ZERO, length) as place:
            width = ir.Constant(I64, WORD if number is None else number.itemsize) if stride is None else stride
            at = element_pointer(builder, data, builder.mul(place.index, width), _BYTE)
            if number is None:
                value = _of_object(builder, load(builder, at, _ZERO, POINTER, POINTER, WORD), scalars, whole, overflow)
            else:
                value = _of_array(builder, at, number)
            store(builder, value, target, place.index, _DOUBLE)
    unknown, failed = function.append_basic_block("unknown"), function.append_basic_block("failed")
    builder.require(builder.icmp_signed("!=", builder.ptrtoint(kernel, I64), _ZERO), unknown)
    thread = builder.call(save, [])
    builder.call(kernel, [*tables, rows])
    builder.call(restore, [thread])
    # Objects are made at the end, as that may run any code of Python.
    made = builder.call(new_list, [rows])
    null = ir.Constant(POINTER, None)
    builder.require(builder.icmp_unsigned("!=", made, null), failed)
    drop, infinite = function.append_basic_block("drop"), function.append_basic_block("infinite")
    with counted(builder, _ZERO, rows) as row:
        fitness = builder.call(new_tuple, [values])
        builder.require(builder.icmp_unsigned("!=", fitness, null), drop)
        store(builder, fitness, builder.field(made, ITEMS, POINTER), row.index, POINTER, WORD)
        with counted(builder, _ZERO, values) as place:
            result = load(builder, out, builder.add(builder.mul(place.index, step), row.index), _DOUBLE, _DOUBLE)
            product = builder.fmul(result, ir.Constant(_DOUBLE, 0.0))  # NaN, if it is not finite
            builder.require(builder.fcmp_ordered("ord", product, product), infinite)
            boxed = builder.call(new_float, [result])
            builder.require(builder.icmp_unsigned("!=", boxed, null), drop)
            items = element_pointer(builder, fitness, ir.Constant(I64, ITEMS), _BYTE)
            store(builder, boxed, items, place.index, POINTER, WORD)
    builder.ret(made)
    for block, after in ((drop, failed), (infinite, unknown)):
        builder.position_at_end(block)
        builder.call(decrease, [made])
        builder.branch(after)
    for block, answer in ((unknown, false), (builder.refused, none)):
        builder.position_at_end(block)
        builder.call(increase, [answer])
        builder.ret(answer)
    builder.position_at_end(failed)
    builder.ret(null)
    return str(module)


def _elements(builder: _Builder, form: type, one: ir.Value, element: ir.Value) -> Any:
    """Length of an individual, address of its elements, and the bytes between them where they may lie apart."""
    if form is np.ndarray:
        is_vector = builder.icmp_signed("==", builder.field(one, RANK, _I32), ir.Constant(_I32, 1))
        builder.require(builder.and_(is_vector, builder.same(builder.field(one, TYPE, I64), element)))
        size, stride = (builder.field(builder.field(one, place, POINTER), 0, I64) for place in (SIZES, STEPS))
        return size, builder.field(one, DATA, POINTER), stride
    if form is array.array:
        builder.require(builder.same(builder.field(one, ITEMS + 2 * WORD, I64), element))
    inside = element_pointer(builder, one, ir.Constant(I64, ITEMS), _BYTE)
    return builder.field(one, COUNT, I64), inside if form is tuple else builder.field(one, ITEMS, POINTER), None


def _of_object(
    builder: _Builder, item: ir.Value, scalars: Sequence[ir.Value], whole: ir.Value, overflow: ir.Value
) -> ir.Value:
    """The number of a Python object of one of `_SCALARS`."""
    real, double, integer, truth, long = scalars
    kind, found = builder.field(item, HEAD - WORD, I64), builder.append_basic_block("found")
    values = []
    for kinds in ((real, double), (integer, truth), (long,)):
        other = builder.append_basic_block()
        builder.require(builder.same(kind, *kinds), other)
        if integer in kinds:
            value = builder.sitofp(builder.call(whole, [item, overflow]), _DOUBLE)
            builder.require(builder.icmp_signed("==", builder.load(overflow, typ=_I32), ir.Constant(_I32, 0)))
        elif long in kinds:
            value = builder.sitofp(builder.field(item, HEAD, I64), _DOUBLE)
        else:
            value = builder.field(item, HEAD, _DOUBLE)
        values.append((value, builder.block))
        builder.branch(found)
        builder.position_at_end(other)
    builder.branch(builder.refused)
    builder.position_at_end(found)
    result = builder.phi(_DOUBLE)
    for value, block in values:
        result.add_incoming(value, block)
    return result


def _of_array(builder: _Builder, at: ir.Value, number: np.dtype[Any]) -> ir.Value:
    """The number at an address, which need not be aligned."""
    if number.kind == "f":
        kind = _DOUBLE if number.char == "d" else ir.FloatType()
        held = builder.load(at, typ=kind, align=1)
        return held if number.char == "d" else builder.fpext(held, _DOUBLE)
    held = builder.load(at, typ=ir.IntType(8 * number.itemsize), align=1)
    return (builder.sitofp if number.kind == "i" else builder.uitofp)(held, _DOUBLE)
