"""Python modules that call a shared library with arrays of NumPy."""

from __future__ import annotations

from collections.abc import Mapping

from shine.formats.native.code import Code, Files
from shine.formats.native.interface import Interface
from shine.formats.native.linking import SUFFIXES
from shine.lang.program.program import Program

_MODULE = '''\
"""{summary}

Written by Shine for {triple}. Needs NumPy, and {library} beside it.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["{name}"]

_library = ctypes.CDLL(str(Path(__file__).resolve().with_name("{library}")))
{constants}

def {name}({signature}) -> Any:
    """{summary}

    Parameters
    ----------
{documented}

    Returns
    -------
    {returned}

    Raises
    ------
{raises}
    """
{body}
'''


_CONSTANTS = '''
PARAMETERS = {parameters}
"""Names of the arguments, in their order."""

DTYPES = {dtypes}
"""Type of each argument."""

RESULTS = {results}
"""Type of each result."""

_columns = _library.{name}_columns
_columns.restype = {restype}
_columns.argtypes = [ctypes.c_size_t] + [ctypes.c_void_p, ctypes.c_ssize_t] * (len(DTYPES) + len(RESULTS))
'''

_BODY = """\
    return _evaluated(({given}))


def _evaluated(given: tuple[ArrayLike, ...]) -> Any:
    arrays = [_array(*each) for each in zip(PARAMETERS, given, DTYPES)]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    # One-dimensional rows are read in place, repeated numbers with a stride of 0.
    rows = [np.broadcast_to(array, shape).reshape(-1) for array in arrays]
    out = [np.empty(shape, dtype) for dtype in RESULTS]
    places: list[int] = []
    for array in (*rows, *(array.reshape(-1) for array in out)):
        places += (array.ctypes.data, array.strides[0] // array.itemsize)
    {call}
    values = [array if shape else array.item() for array in out]
    return values[0] if len(values) == 1 else tuple(values)


def _array(name: str, value: ArrayLike, dtype: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"argument {{name!r}} has dtype {{array.dtype}}; numbers are needed")
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(dtype, copy=False)
    if converted.dtype.kind != "f" and not np.array_equal(converted, array):
        raise TypeError(f"argument {{name!r}} does not fit {{dtype}}: it has fractions, or is out of range")
    even = all(stride % converted.itemsize == 0 for stride in converted.strides)
    return converted if even and converted.flags.aligned else converted.copy()
"""

_CALL = "_columns(int(np.prod(shape, dtype=np.int64)), *places)"

_CHECKED = """if {call}:
        raise ZeroDivisionError("integer division by zero in {name}")"""

_RAISES = """\
    TypeError
        If an argument is no number, or does not fit its type."""

_FAILS = """
    ZeroDivisionError
        If an integer division has a zero divisor in any row."""


def python_module(
    code: Code, constants: str, arguments: Mapping[str, str], note: str, returned: str, raises: str, body: str
) -> Files:
    """A Python module with one function; its shared library is another kind of file.

    Parameters
    ----------
    code : Code
    constants : str
        Statements before the function; `_library` is the shared library.
    arguments : mapping of str to str
        Descriptions of the function's arguments by name.
    note : str
        Sentences of the documentation on all arguments.
    returned, raises : str
        Documentation of results and errors.
    body : str
        The function's statements, and what follows it.
    """
    listed = [f"    {name} : {description}" for name, description in arguments.items()]
    text = _MODULE.format(
        summary=summary(code),
        triple=code.target.triple,
        library=f"lib{code.name}{SUFFIXES.get(code.target.format, '')}",
        name=code.name,
        constants=constants,
        signature=", ".join(f"{name}: ArrayLike" for name in arguments),
        documented="\n".join([*listed, *([note] if note else [])]),
        returned=returned,
        raises=raises,
        body=body.rstrip("\n"),
    )
    return {f"{code.name}.py": text.encode()}


def formula_module(code: Code, interface: Interface, program: Program) -> Files:
    """The Python module of a formula, whose arguments broadcast."""
    # `_evaluated` is a function of the module.
    names = [f"{each.name}_" if each.name == "_evaluated" else each.name for each in program.parameters]
    dtypes = tuple(column.dtype for column in interface.parameters)
    results = tuple(column.dtype for column in interface.outputs)
    constants = _CONSTANTS.format(
        parameters=repr(tuple(names)),
        dtypes=repr(dtypes),
        results=repr(results),
        name=interface.name,
        restype="ctypes.c_int" if interface.can_fail else "None",
    )
    call = _CHECKED.format(call=_CALL, name=interface.name) if interface.can_fail else _CALL
    return python_module(
        code,
        constants,
        {name: _kind(dtype) for name, dtype in zip(names, dtypes, strict=True)},
        "        Arrays broadcast against each other.",
        f"{', '.join(map(_kind, results))}\n        Numbers if all arguments are numbers, else arrays of the shape to "
        "which they broadcast.",
        _RAISES + (_FAILS if interface.can_fail else ""),
        _BODY.format(given=", ".join(names) + "," * (len(names) == 1), call=call),
    )


def _kind(dtype: str) -> str:
    return f"number or array of {dtype}"


def summary(code: Code) -> str:
    """The formula as the first line of a docstring."""
    line = " ".join(code.description.split()).replace("\\", "/").replace('"', "'")
    return f"{line}." if line[-1:].isalnum() else line
