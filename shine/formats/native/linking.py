"""Shared libraries, linked by a linker of the system or of the extra `aot`, and the Python modules that call them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shine.base.errors import ExportError
from shine.formats.native.code import Code, Files, Job
from shine.formats.native.targets import Target

SUFFIXES = {"elf": ".so", "macho": ".dylib", "coff": ".dll"}
"""Ending of shared libraries in each format that has such libraries."""

_SECONDS = 300


@dataclass(frozen=True)
class _Linker:
    """A command that links one object file.

    Parameters
    ----------
    command : list of str
    driver : bool
        Whether it is a compiler that runs a linker, not a linker itself.
    """

    command: list[str]
    driver: bool

    def line(self, target: Target, source: str, out: str) -> list[str]:
        """The whole command line."""
        options = {
            ("elf", True): ["-shared", "-nostdlib", "-Wl,-z,defs", "-Wl,--build-id=none", f"-Wl,-soname,{out}"],
            ("elf", False): ["-shared", "-z", "defs", "-z", "noexecstack", "-soname", out],
            ("macho", True): ["-dynamiclib", "-nostdlib", f"-Wl,-install_name,@rpath/{out}"],
            ("coff", True): ["-shared", "-nostdlib", "-Wl,--no-entry"],
        }[target.format, self.driver]
        return [*self.command, *options, "-o", out, source]


def shared_files(job: Code) -> Files:
    """The shared library of a job.

    Raises
    ------
    ExportError
        If there is no linker for the target, or it fails.
    """
    target = job.target
    if target.format not in SUFFIXES:
        raise ExportError(f"{target.triple} has no shared libraries; emit an object file")
    out, source = f"lib{job.name}{SUFFIXES[target.format]}", f"{job.name}.o"
    code = job.object_code
    problems = []
    for linker in _linkers(target):
        with tempfile.TemporaryDirectory(prefix="shine-") as folder:
            Path(folder, source).write_bytes(code)
            problem = _run(linker.line(target, source, out), folder)
            if not problem:
                return {out: Path(folder, out).read_bytes()}
            problems.append(problem)
    if problems:
        raise ExportError(f"the shared library cannot be linked: {'; '.join(problems)}")
    wanted = "a C compiler (cc or clang)" if target.is_host else f"{_gnu(target.triple)}-ld, ld.lld"
    raise ExportError(
        f"no linker for shared libraries of {target.triple} is installed; install {wanted}, or Shine's extra: "
        "pip install 'shine[aot]'"
    )


def _linkers(target: Target) -> Iterator[_Linker]:
    """Commands that may link for a target, the first choice first."""
    names: list[tuple[str, bool]] = []
    if target.is_host:
        names += [("cc", True), ("clang", True)]
    if target.format == "elf":
        names += [("ld", False)] * target.is_host + [(f"{_gnu(target.triple)}-ld", False), ("ld.lld", False)]
    for name, driver in names:
        path = shutil.which(name)
        if path:
            yield _Linker([path], driver)
    if importlib.util.find_spec("ziglang"):
        yield _Linker([sys.executable, "-m", "ziglang", "cc", "-target", _zig(target.triple)], True)


def _run(command: list[str], folder: str) -> str:
    """The complaint of a command; empty if it succeeds."""
    environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(Path(folder, "cache"))}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{Path(command[0]).name}: {error}"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"{Path(command[0]).name}: {lines[-1] if lines else done.returncode}" if done.returncode else ""


def _parts(triple: str) -> tuple[str, str, str]:
    """Architecture, system and environment of a triple."""
    architecture, _, rest = triple.partition("-")
    system, _, environment = rest.partition("-")[2].partition("-")
    return architecture, system, environment


def _gnu(triple: str) -> str:
    """The name of a target in the tools of Debian and others: ``arm-linux-gnueabihf``."""
    architecture, system, environment = _parts(triple)
    architecture = "arm" if re.match(r"arm|thumb", architecture) else architecture
    return "-".join(filter(None, (architecture, system, environment)))


def _zig(triple: str) -> str:
    """Zig's name of a target: ``aarch64-macos``."""
    architecture, system, environment = _parts(triple)
    architecture = {"arm64": "aarch64", "i686": "x86"}.get(architecture, architecture)
    architecture = "arm" if architecture.startswith("arm") else architecture
    system = "macos" if system.startswith(("darwin", "macos")) else system
    environment = "gnu" if system == "windows" else environment
    return "-".join(filter(None, (architecture, system, environment)))


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
