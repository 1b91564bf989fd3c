"""Tensor programs on NVIDIA GPUs: a function for one thread, and a kernel whose threads take the items of a batch."""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, element_pointer, stack, store
from shine.compiler.codegen.native.row_by_row import place_in_grid
from shine.formats.native.code import Code, Files
from shine.formats.native.headers import header_file
from shine.tensor.loops.arena import ALIGNMENT, aligned
from shine.tensor.loops.lanes import BYTE, STORED
from shine.tensor.native.headers import call, described
from shine.tensor.native.interface import Interface

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


def ptx_files(code: Code, interface: Interface) -> Files:
    """The PTX of a function, and the header ``NAME.cuh`` that says how to call it; the target is a GPU."""
    return {f"{code.name}.ptx": code.assembly.encode(), **_header(code, interface)}


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
