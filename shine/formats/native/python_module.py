"""A Python module that calls the shared library beside it, and needs only NumPy and the standard library."""

from __future__ import annotations

from shine.formats.native.code import Code, Files, Job
from shine.formats.native.linking import SUFFIXES

_MODULE = '''\
"""{summary}

Written by Shine for {triple}. Needs NumPy, and {library} beside it.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["{name}"]

PARAMETERS = {parameters}
"""Names of the arguments, in their order."""

DTYPES = {dtypes}
"""Type of each argument."""

RESULTS = {results}
"""Type of each result."""

_library = ctypes.CDLL(str(Path(__file__).resolve().with_name("{library}")))
_columns = _library.{name}_columns
_columns.restype = {restype}
_columns.argtypes = [ctypes.c_size_t] + [ctypes.c_void_p, ctypes.c_ssize_t] * (len(DTYPES) + len(RESULTS))


def {name}({signature}) -> Any:
    """{summary}

    Parameters
    ----------
{documented}
        Arrays broadcast against each other.

    Returns
    -------
    {returned}
        Numbers if all arguments are numbers, else arrays of the shape to which they broadcast.

    Raises
    ------
    TypeError
        If an argument is no number, or does not fit its type.
{fails}    """
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
'''

_CALL = "_columns(int(np.prod(shape, dtype=np.int64)), *places)"

_CHECKED = """if {call}:
        raise ZeroDivisionError("integer division by zero in {name}")"""

_FAILS = """    ZeroDivisionError
        If an integer division has a zero divisor in any row.
"""


def python_files(job: Job) -> Files:
    """The Python module of a job; its shared library is another kind of file.

    Raises
    ------
    ExportError
        If the target has no shared libraries.
    """
    interface = job.interface
    names = [_free(parameter.name) for parameter in job.program.parameters]
    dtypes = tuple(column.dtype for column in interface.parameters)
    results = tuple(column.dtype for column in interface.outputs)
    text = _MODULE.format(
        summary=summary(job),
        triple=job.target.triple,
        library=f"lib{job.name}{SUFFIXES.get(job.target.format, '')}",
        name=interface.name,
        parameters=repr(tuple(names)),
        dtypes=repr(dtypes),
        results=repr(results),
        restype="ctypes.c_int" if interface.can_fail else "None",
        signature=", ".join(f"{name}: ArrayLike" for name in names),
        documented="\n".join(f"    {name} : {_kind(dtype)}" for name, dtype in zip(names, dtypes, strict=True)),
        returned=", ".join(map(_kind, results)),
        fails=_FAILS if interface.can_fail else "",
        given=", ".join(names) + "," * (len(names) == 1),
        call=_CHECKED.format(call=_CALL, name=interface.name) if interface.can_fail else _CALL,
    )
    return {f"{job.name}.py": text.encode()}


def _free(name: str) -> str:
    """A name that hides no name of the module that its function needs."""
    return f"{name}_" if name == "_evaluated" else name


def _kind(dtype: str) -> str:
    return f"number or array of {dtype}"


def summary(job: Code) -> str:
    """The formula as the first line of a docstring."""
    line = " ".join(job.description.split()).replace("\\", "/").replace('"', "'")
    return f"{line}." if line[-1:].isalnum() else line
