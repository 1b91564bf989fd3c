"""Groups of nests: each kind's emission, memory, and description."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.processor import Machine
from shine.tensor.loops.division import Part, shared_loops
from shine.tensor.loops.fusion import Group, Nest
from shine.tensor.loops.index import Index
from shine.tensor.loops.nest import Site, emit_nest, loops
from shine.tensor.loops.order import SPECIAL, emit_sort, sort_scratch_bytes
from shine.tensor.loops.placement import Placement
from shine.tensor.loops.products.convolution import convolution_of, emit_convolution, emit_padding, rooms_of
from shine.tensor.loops.products.dot import dot_of, emit_dot


def scratch_bytes(machine: Machine, placed: Placement, nest: Nest) -> int:
    """Bytes that a nest without calls needs while it runs."""
    maker = nest.maker
    if maker is None:
        return 0
    if nest.kind == "dot":
        return dot_of(machine, placed, maker).scratch_bytes
    if nest.kind == "convolve":
        return convolution_of(machine, maker).scratch_bytes
    return sort_scratch_bytes(maker) if SPECIAL[nest.kind] is emit_sort else 0


def emit_paddings(site: Site, group: Group, scratch: ir.Value) -> None:
    """Emit the copies that must be whole before a group is divided."""
    for nest in group.nests:
        if nest.kind == "convolve":
            emit_padding(site, nest, scratch)


def needs_padding(machine: Machine, group: Group) -> bool:
    """Whether `emit_paddings` emits anything."""
    makers = [nest.maker for nest in group.nests if nest.kind == "convolve"]
    return any(maker is not None and convolution_of(machine, maker).padded_bytes for maker in makers)


def emit_group(site: Site, group: Group, scratch: ir.Value, part: Part | None = None) -> str:
    """Emit the nests of a group inside their common loops, or a part of them; return their description."""
    said = [_described(site, nest) for nest in group.nests]
    own = part.scratch if part else None
    rooms = {id(nest): rooms_of(site, nest, scratch, own) for nest in group.nests if nest.kind == "convolve"}
    if part is None:
        emit_paddings(site, group, scratch)
    some = part.span if part and part.sharing.over == "filters" else None

    def inside(outer: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        for nest in group.nests:
            if nest.kind == "dot":
                emit_dot(site, nest, scratch, part)
            elif nest.kind == "convolve":
                emit_convolution(site, nest, rooms[id(nest)], outer, some)
            elif nest.kind in SPECIAL:
                assert nest.maker is not None
                SPECIAL[nest.kind](site, nest.maker, scratch)
            else:
                emit_nest(site, nest, outer)
        return values

    if part is not None and part.sharing.outer:
        shared_loops(site.builder, group.nests[0].shape[: part.sharing.outer], part.span, inside)
    else:
        loops(site.builder, group.nests[0].shape[: group.outer], inside)
    shared = f"in {group.outer} common loops: " if group.outer else ""
    return shared + "; ".join(said) + (f", {part.sharing}" if part else "")


def _described(site: Site, nest: Nest) -> str:
    """A nest in words."""
    maker = nest.maker
    made_here = () if maker is None else maker.results
    fused = [str(store.value) for store in nest.stores if store.is_written and store.value not in made_here]
    if nest.kind == "dot" and maker is not None:
        return f"dot {dot_of(site.machine, site.placed, maker)}" + (f", fused with {', '.join(fused)}" if fused else "")
    if nest.kind == "convolve" and maker is not None:
        return f"convolve {convolution_of(site.machine, maker)}" + (f", fused with {', '.join(fused)}" if fused else "")
    made = fused + [f"{reduction.result} ({reduction.operation})" for reduction in nest.reductions]
    return f"{nest.kind} {' x '.join(map(str, nest.shape)) or '1'}: {', '.join(made)}"
