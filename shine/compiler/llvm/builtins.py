"""Native functions that CPython calls as it calls its own: without `ctypes`, whose calls take half a microsecond."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from shine.compiler.llvm.engine import Engine

_FASTCALL = 0x80
"""METH_FASTCALL: the function gets the addresses of its arguments, and how many there are (methodobject.h)."""


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
    definition = _Definition(name.encode(), engine.address(name), _FASTCALL, None)
    # The function refers to its definition, so its `self` keeps that alive, and the code.
    found: Callable[..., Any] = made(ctypes.addressof(definition), (engine, definition), None)
    return found


def interpreter_function(name: str) -> int:
    """The address of a function of CPython's C API in this process."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
