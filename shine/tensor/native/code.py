"""Code of a tensor program for a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from llvmlite import ir

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, element_pointer, stack, store
from shine.compiler.codegen.native.row_by_row import place_in_grid
from shine.formats.native.code import Code, Emitter, Files
from shine.formats.native.emission import OF_CODE
from shine.formats.native.headers import header_file
from shine.formats.native.python_module import python_module
from shine.formats.native.targets import Target, gpu_target
from shine.formats.native.wasm import wasm_target
from shine.tensor.loops.arena import ALIGNMENT, aligned
from shine.tensor.loops.lanes import BYTE, STORED
from shine.tensor.native.cpp_class import class_files
from shine.tensor.native.interface import Interface, Tensor, call, described, tensor_header
from shine.tensor.native.wasm import TAKEN, tensor_files

PROMISES = """\
Elements are in row-major order. Nothing is allocated, and all numbers are computed by the thread that needs them."""

_DECLARATIONS = """\
/* Bytes of the arena of one thread, which is scratch memory: its address must be a multiple of {alignment}. */
#define {name}_arena_bytes ((size_t){arena}u)

/*
 * The kernel computes the function for many items. Of a grid of T threads in one dimension, thread t takes the items
 * t, t + T, t + 2 T, ... Its parameters, for cuLaunchKernel:
 *
{kernel}
 *
 * A stride is the number of elements from the argument of an item to that of the next one; 0 if all items have the
 * same.
 */

#ifdef __CUDACC__
/*
 * One item: computes results from arguments, which it does not change. A result must not overlap anything else.
 *
{listed}
 */
extern "C" __device__ void {name}(const void *const *arguments, void *const *results, void *arena);

/* The same, with a pointer for each tensor. */
{call}#endif
"""


def arena_of_thread(interface: Interface) -> int:
    """Bytes of the arena of a thread, padded so that the next thread's may follow."""
    return aligned(interface.arena_bytes)


def kernel_ir(interface: Interface) -> str:
    """LLVM IR of the kernel ``NAME_kernel``, which calls the function of an interface for the items of a batch.

    It takes address and stride of each argument, the addresses of the results, whose items are contiguous, that of an
    arena for each thread of the grid, and the number of items.
    """
    module = ir.Module()
    labels = ("arguments", "results", "arena")
    function = declare(module, interface.name, ir.VoidType(), [POINTER] * 3, labels)
    given, made = len(interface.arguments), len(interface.results)
    kinds = [POINTER, I64] * given + [POINTER] * made + [POINTER, I64]
    kernel = declare(module, f"{interface.name}_kernel", ir.VoidType(), kinds, [f"p{i}" for i in range(len(kinds))])
    kernel.calling_convention = "ptx_kernel"
    *places, arenas, items = kernel.args
    steps = [*places[1 : 2 * given : 2], *(ir.Constant(I64, each.type.elements) for each in interface.results)]
    bases = [*places[: 2 * given : 2], *places[2 * given :]]
    build = ir.IRBuilder(kernel.append_basic_block("entry"))
    table = stack(build, POINTER, max(1, given + made))
    results = element_pointer(build, table, ir.Constant(I64, given), POINTER)
    thread, threads = place_in_grid(build)
    size = ir.Constant(I64, arena_of_thread(interface))
    arena = element_pointer(build, arenas, build.mul(thread, size), BYTE)
    with counted(build, thread, items, threads) as loop:
        for place, (base, step, each) in enumerate(zip(bases, steps, interface.tensors, strict=True)):
            address = element_pointer(build, base, build.mul(loop.index, step), STORED[each.type.dtype])
            store(build, address, table, ir.Constant(I64, place), POINTER, 8)
        build.call(function, [table, results, arena])
    build.ret_void()
    return "".join(str(each) for each in module.functions if each is not function)


def _header(code: Code, interface: Interface) -> Files:
    text = _DECLARATIONS.format(
        name=interface.name,
        arena=arena_of_thread(interface),
        alignment=ALIGNMENT,
        kernel="\n".join(f" *   {each}" for each in _parameters(interface)),
        listed=described(interface, " * "),
        call=call(interface, "static __device__ inline"),
    )
    return header_file(code, text, PROMISES, "cuh")


def _parameters(interface: Interface) -> Iterator[str]:
    """The kernel's parameters, as a person reads them."""
    for each in interface.arguments:
        yield f"const {each.c_type} *{each.name}, int64_t its stride"
    for each in interface.results:
        yield f"{each.c_type} *{each.name}: the items one after the other"
    yield f"void *arenas: {interface.name}_arena_bytes for each thread of the grid"
    yield "int64_t items"


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
        """The PTX and the header ``NAME.cuh`` that says how to call it, if the target is a GPU."""
        return {f"{self.name}.ptx": self.assembly.encode(), **_header(self, self.interface)}

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
