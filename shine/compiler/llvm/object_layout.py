"""Native code that works with CPython's objects: offsets of fields in CPython and NumPy, and functions that it calls.

CPython calls a `builtin` as one of its own, without `ctypes`, whose calls take half a microsecond. The offsets hold for
the versions in `VERSIONS`, 64-bit builds with the interpreter's lock. Elsewhere (newer versions, free-threaded builds,
PyPy) callers take the ordinary way through `ctypes`, which is slower and computes the same. `is_readable` tries the
offsets on some arrays.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from shine.compiler.llvm.engine import Engine

VERSIONS = ((3, 11), (3, 13))
"""First and last version of CPython on which the tests of objects have run."""

WORD = 8
HEAD = object.__basicsize__
ITEMS = tuple.__basicsize__
COUNT = ITEMS - WORD

# PyArrayObject_fields: data, nd, dimensions, strides, base, descr, flags (numpy/ndarraytypes.h).
DATA, RANK, SIZES, STEPS, TYPE, FLAGS = (HEAD + place * WORD for place in (0, 1, 2, 3, 5, 6))

# NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE.
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

NEW_ARRAY = 94
"""Place of PyArray_NewFromDescr in NumPy's table of functions (numpy/__multiarray_api.h)."""


def array_function(place: int) -> int:
    """The address of a function of NumPy's C API: it is where `import_array` of an extension module finds it."""
    newer = int(np.__version__.partition(".")[0]) >= 2
    module = import_module("numpy._core._multiarray_umath" if newer else "numpy.core._multiarray_umath")
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(module._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + place * WORD).value or 0


def is_known_python() -> bool:
    """Whether this interpreter is one of those whose objects native code may read."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    is_tested = VERSIONS[0] <= sys.version_info[:2] <= VERSIONS[1]
    return sys.implementation.name == "cpython" and is_tested and has_lock and ctypes.sizeof(ctypes.c_void_p) == WORD


@cache
def is_readable() -> bool:
    """Whether arrays in this process have their facts at the offsets above, and NumPy's function makes such arrays."""
    if not is_known_python():
        return False
    if ctypes.c_double.from_address(id(number := float("1.5")) + HEAD).value != number:
        return False
    arrays = [np.zeros(shape, dtype)[::step] for shape, dtype, step in _PROBES]
    return all(_is_as_expected(array) and _is_made_alike(array) for array in arrays)


_PROBES = (((2, 3, 5), np.float32, 1), ((7,), np.int64, 2), ((4, 1), np.bool_, 1))


def _is_as_expected(array: np.ndarray) -> bool:
    def word(offset: int, kind: type[ctypes.c_int64 | ctypes.c_int32] = ctypes.c_int64) -> int:
        return int(kind.from_address(id(array) + offset).value)

    facts = [word(HEAD - WORD) == id(type(array)), word(DATA) == array.ctypes.data]
    facts += [word(RANK, ctypes.c_int32) == array.ndim, word(TYPE) == id(array.dtype)]
    if not all(facts):
        return False
    flags = word(FLAGS, ctypes.c_int32)
    sizes, steps = (tuple((ctypes.c_int64 * array.ndim).from_address(word(place))) for place in (SIZES, STEPS))
    item = ctypes.c_int64.from_address(id(box := (array,)) + ITEMS).value
    count = ctypes.c_int64.from_address(id(box) + COUNT).value
    return (
        (sizes, steps) == (array.shape, array.strides)
        and (item, count) == (id(box[0]), 1)
        and bool(flags & CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & ALIGNED) == array.flags.aligned
        and bool(flags & WRITEABLE) == array.flags.writeable
    )


def _is_made_alike(array: np.ndarray) -> bool:
    """Whether NumPy's function makes an array of the same type and shape."""
    pointer, count, kind = ctypes.c_void_p, ctypes.c_int, ctypes.py_object
    make = ctypes.PYFUNCTYPE(kind, kind, pointer, count, pointer, pointer, pointer, count, pointer)(
        array_function(NEW_ARRAY)
    )
    ctypes.PYFUNCTYPE(None, kind)(("Py_IncRef", ctypes.pythonapi))(array.dtype)
    sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
    made = make(type(array), id(array.dtype), array.ndim, ctypes.addressof(sizes), None, None, 0, None)
    return (
        type(made) is np.ndarray
        and (made.dtype, made.shape) == (array.dtype, array.shape)
        and made.flags.c_contiguous
        and made.flags.writeable
        and made.flags.owndata
    )


class _Definition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def builtin(engine: Engine, name: str) -> Callable[..., Any]:
    """A function ``PyObject *NAME(PyObject *self, PyObject *const *arguments, Py_ssize_t count)`` as an object.

    It is called with the lock of the interpreter held, may not trust `count`, and has to follow the rules for
    references of CPython's C API. `self` says nothing.

    Parameters
    ----------
    engine : Engine
        It defines the function, which keeps it alive.
    name : str

    Returns
    -------
    callable
        It takes arguments by position.

    Raises
    ------
    CompilationError
        If the module has no such function, or the engine is closed.
    """
    made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    # METH_FASTCALL: the function gets the addresses of its arguments, and how many there are (methodobject.h)
    definition = _Definition(name.encode(), engine.address(name), 0x80, None)
    # The function refers to its definition, so its `self` keeps that alive, and the code.
    found: Callable[..., Any] = made(ctypes.addressof(definition), (engine, definition), None)
    return found


def interpreter_function(name: str) -> int:
    """The address of a function of CPython's C API in this process."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
