"""Code of a tensor program for a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.formats.native.code import Code, Emitter, Files
from shine.formats.native.emission import OF_CODE
from shine.formats.native.python_module import python_module
from shine.formats.native.targets import Target, gpu_target
from shine.formats.native.wasm import wasm_target
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.cpp_class import class_files
from shine.tensor.native.headers import tensor_header
from shine.tensor.native.interface import Interface, Tensor
from shine.tensor.native.nvptx import ptx_files
from shine.tensor.native.wasm import TAKEN, tensor_files

_CONSTANTS = '''
PARAMETERS = {parameters}
"""Label, type and shape of each argument."""

RESULTS = {results}
"""Label, type and shape of each result."""

_ARENA_BYTES = {arena}
_run = _library.{name}
_run.restype = None
_run.argtypes = [ctypes.c_void_p] * 3
_arenas = threading.local()
'''

_BODY = '''\
    arguments = [_array(*each) for each in zip(PARAMETERS, ({given}))]
    results = [np.empty(shape, dtype) for _, dtype, shape in RESULTS]
    _run(_table(arguments), _table(results), _arena())
    values = [array[()] for array in results]
    return values[0] if len(values) == 1 else tuple(values)


def _array(described: tuple[str, str, tuple[int, ...]], value: ArrayLike) -> NDArray[Any]:
    label, dtype, shape = described
    array = np.asarray(value)
    if hasattr(value, "dtype") and array.dtype != dtype:
        raise TypeError(f"argument {{label!r}} has elements of type {{array.dtype}}, not {{dtype}}")
    if array.shape != shape:
        raise ValueError(f"argument {{label!r}} has shape {{array.shape}}, not {{shape}}")
    return np.require(array, dtype, ["C", "A"])


def _table(arrays: list[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])


def _arena() -> int:
    """Address of this thread's scratch memory."""
    if not hasattr(_arenas, "memory"):
        _arenas.memory = np.empty(_ARENA_BYTES + {alignment}, np.uint8)
    return -(-_arenas.memory.ctypes.data // {alignment}) * {alignment}
'''

_RAISES = """\
    TypeError
        If an array has elements of another type.
    ValueError
        If it has another shape."""

_TAKEN = frozenset({"annotations", "ctypes", "threading", "np"})
"""Names of the module that its function needs."""


def tensor_module(code: Code, interface: Interface) -> Files:
    """The Python module of a function of arrays."""
    names = [f"{each.name}_" if each.name in _TAKEN else each.name for each in interface.arguments]
    constants = _CONSTANTS.format(
        parameters=_described(interface.arguments),
        results=_described(interface.results),
        name=interface.name,
        arena=interface.arena_bytes,
    )
    body = _BODY.format(given="".join(f"{name}, " for name in names).rstrip(" "), alignment=ALIGNMENT)
    arguments = dict(zip(names, map(_kind, interface.arguments), strict=True))
    return python_module(code, constants, arguments, "", ", ".join(map(_kind, interface.results)), _RAISES, body)


def _described(tensors: tuple[Tensor, ...]) -> str:
    lines = "".join(f"    {(each.label, each.type.numpy.name, each.type.shape)!r},\n" for each in tensors)
    return f"(\n{lines})" if lines else "()"


def _kind(tensor: Tensor) -> str:
    return f"array of {tensor.type.numpy.name}, shape {tensor.type.shape}"


@dataclass(frozen=True)
class Lowered:
    """A tensor program as LLVM IR.

    Parameters
    ----------
    text : str
        It defines the function of the interface.
    interface : Interface
    report : tuple of str
        Descriptions of the groups of loops.
    steps : tuple of int
        Blocks of the steps that threads share; none if one thread runs the function.
    scratch_bytes : int
        Memory of its own that each of these threads needs.
    """

    text: str
    interface: Interface
    report: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    scratch_bytes: int = 0


Lowering = Callable[[Target], Lowered]
"""Makes LLVM IR for a target."""


@dataclass(frozen=True, eq=False)
class TensorCode(Code):
    """A tensor program that is compiled for a target.

    Parameters
    ----------
    order, description
        As of `Code`.
    lower : callable
        The program's `Lowering`.
    cpp_class : str
        Name of its class in C++, with namespaces; empty if it has none. Its header comes with all files.
    """

    emitters: ClassVar[Mapping[str, Emitter]] = {
        **OF_CODE,
        "class": lambda code: code.class_header(),
        "python": lambda code: tensor_module(code, code.interface),
        "wasm": lambda code: code.on(wasm_target(code, TAKEN)).wasm(),
        "ptx": lambda code: code.on(gpu_target(code.target)).ptx(),
    }

    lower: Lowering
    cpp_class: str = ""

    @cached_property
    def _lowered(self) -> Lowered:
        return self.lower(self.target)

    @property
    def interface(self) -> Interface:
        """Names and types of the function."""
        return self._lowered.interface

    @property
    def steps(self) -> tuple[int, ...]:
        """Blocks of the steps that threads share; none if one thread runs the function."""
        return self._lowered.steps

    @property
    def scratch_bytes(self) -> int:
        """Memory of its own that each of the threads needs."""
        return self._lowered.scratch_bytes

    @property
    def report(self) -> str:
        """A line for each group of loops: tiles, vectors, fused values; then its memory."""
        return "\n".join([*self._lowered.report, f"arena: {self.interface.arena_bytes} bytes"])

    @property
    def text(self) -> str:
        """LLVM IR of the function."""
        return self._lowered.text

    def header(self) -> Files:
        """The header for C and C++.

        A `CompilationError` if the target is a GPU, whose functions no program in C can call.
        """
        if self.target.format == "ptx":
            raise CompilationError(f"{self.target.triple} has no header in C; emit ptx, which makes {self.name}.cuh")
        return tensor_header(self, self.interface)

    def class_header(self) -> Files:
        """The header of the class in C++."""
        return class_files(self, self.interface, self.cpp_class)

    def wasm(self) -> Files:
        """The WebAssembly module, if that is the target."""
        return tensor_files(self, self.interface)

    def ptx(self) -> Files:
        """The PTX and its header, if the target is a GPU."""
        return ptx_files(self, self.interface)

    def files(self, kinds: str | Iterable[str]) -> Files:
        """The files of some kinds, and the class in C++ if there is one."""
        files = super().files(kinds)
        return {**files, **self.class_header()} if self.cpp_class else files

    def described(self) -> dict[str, object]:
        """The description of `Code`, with the class, arguments, results and the size of the arena."""
        interface = self.interface
        tensors = {"parameters": _listed(interface.arguments), "outputs": _listed(interface.results)}
        facts = {"class": self.cpp_class or None, **tensors, "arena_bytes": interface.arena_bytes}
        return {**super().described(), **facts}


def _listed(tensors: tuple[Tensor, ...]) -> list[dict[str, object]]:
    return [{"name": each.label, "dtype": each.type.numpy.name, "shape": list(each.type.shape)} for each in tensors]
