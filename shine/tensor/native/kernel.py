"""A compiled tensor program that is called with arrays of NumPy."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.typing import AnyArray
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import builtin, is_readable
from shine.compiler.threads import Workers
from shine.lang.forms.names import listed, shown
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.loops.sharing import STATE_BYTES
from shine.tensor.native.code import TensorCode
from shine.tensor.native.interface import Interface, Tensor
from shine.tensor.native.objects import SUFFIX, objects_ir


def bound(interface: Interface, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments in their order; a `TypeError` if one is missing, unknown, or given twice."""
    tensors = interface.arguments
    values: dict[int, Any] = dict(enumerate(given))
    for name, value in named.items():
        place = next((i for i, tensor in enumerate(tensors) if name in (tensor.name, tensor.label)), None)
        if place is None:
            raise TypeError(f"{interface.name} has no argument {shown(name)}; it takes {interface.signature}")
        if place in values:
            raise TypeError(f"{interface.name} has two values for argument {shown(name)}")
        values[place] = value
    if len(values) > len(tensors):
        raise TypeError(f"{interface.name} takes {len(tensors)} arguments, not {len(given)}: {interface.signature}")
    missing = [tensor.label for i, tensor in enumerate(tensors) if i not in values]
    if missing:
        raise TypeError(f"{interface.name} needs {listed(missing)}; it takes {interface.signature}")
    return tuple(values[i] for i in range(len(tensors)))


def argument(tensor: Tensor, value: Any) -> AnyArray:
    """An argument as an array in row-major order: itself if it is one, else a copy.

    Raises
    ------
    TypeError
        If it has another element type. Numbers and lists of numbers, which have none, become that type.
    ValueError
        If it has another shape.
    """
    wanted = tensor.type.numpy
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(f"argument {shown(tensor.label)} has masked elements; fill them")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"argument {shown(tensor.label)} is no array of numbers: its rows differ in length") from None
    except Exception as error:  # whatever the class of a foreign array raises
        raise TypeError(f"argument {shown(tensor.label)} cannot become an array: {error}") from None
    if array.dtype != wanted:
        if array.dtype.kind not in "biufc":
            raise TypeError(f"argument {shown(tensor.label)} is no array of numbers that {wanted} can be")
        if hasattr(value, "dtype") or array.dtype.kind == "c":
            raise TypeError(
                f"argument {shown(tensor.label)} has elements of type {array.dtype}, not {wanted}; "
                f"convert it with astype({wanted.name!r})"
            )
        array = _converted(tensor, array)
    if array.shape != tensor.type.shape:
        raise ValueError(f"argument {shown(tensor.label)} has shape {array.shape}, not {tensor.type.shape}")
    # `require` adds an axis to scalars.
    return np.require(array, requirements=["C", "A"]).reshape(array.shape).view(np.ndarray)


def _converted(tensor: Tensor, array: AnyArray) -> AnyArray:
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(tensor.type.numpy)
    if converted.dtype.kind != "f" and not np.array_equal(converted, array):
        raise TypeError(f"argument {shown(tensor.label)} has numbers that {tensor.type.numpy} has not")
    return converted


def check_outputs(interface: Interface, arrays: Sequence[Any], arguments: Sequence[AnyArray]) -> None:
    """Raise unless the caller's arrays can take the results.

    Raises
    ------
    TypeError
        If they are no arrays of the results' element types, or too few or many.
    ValueError
        If one has another shape, is not in row-major order, cannot be written, or overlaps another array.
    """
    results = interface.results
    if len(arrays) != len(results):
        raise TypeError(f"out has {len(arrays)} arrays, and {interface.name} has {len(results)} results")
    for place, (tensor, array) in enumerate(zip(results, arrays, strict=True)):
        where = f"out for {shown(tensor.label)}"
        if not isinstance(array, np.ndarray) or array.dtype != tensor.type.numpy:
            found = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{where} must be an array of {tensor.type.numpy}, not {found}")
        if array.shape != tensor.type.shape:
            raise ValueError(f"{where} has shape {array.shape}, not {tensor.type.shape}")
        if not (array.flags.carray and array.dtype.isnative):
            raise ValueError(f"{where} must be writable, and its elements aligned and in row-major order")
        if any(np.may_share_memory(array, other) for other in (*arguments, *arrays[:place])):
            raise ValueError(f"{where} overlaps an argument or another result; use an array of its own")


_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class Team:
    """Threads for the steps of a program (`shine.tensor.loops.sharing`); several calls may use it at once."""

    def __init__(self, code: TensorCode, threads: int) -> None:
        self._name = code.interface.name
        self._steps, self._scratch = len(code.steps), code.scratch_bytes
        self._threads = min(threads, max(code.steps))
        self._workers = Workers(self._threads)

    def function(self, engine: Engine) -> Callable[[int, int, int], None]:
        """The program, as a function of the addresses of arguments, results and arena."""
        share = engine.function(f"{self._name}.share", ctypes.c_int32, *[ctypes.c_void_p] * 5)

        def run(arguments: int, results: int, arena: int) -> None:
            # Shared memory of threads and their own, each at a line of the cache.
            state_bytes = (self._steps + 1) * STATE_BYTES
            room = np.empty(state_bytes + self._threads * self._scratch + ALIGNMENT, np.uint8)
            state = -(-room.ctypes.data // ALIGNMENT) * ALIGNMENT
            ctypes.memset(state, 0, state_bytes)
            scratch = state + state_bytes
            stopped = ctypes.c_int64.from_address(state)

            def work(thread: int) -> None:
                while share(arguments, results, arena, scratch + thread * self._scratch, state):
                    _yield()

            def abandon() -> None:
                stopped.value = 1

            self._workers.run(work, abandon)

        return run


_SEVERAL = (tuple, list)


class TensorKernel:
    """Native code of a tensor program in this process; threads may call it at the same time.

    Each thread that calls it keeps an arena for it.

    Parameters
    ----------
    code : TensorCode
        For this processor.
    threads : int
        Threads that share a call, if the code has steps for them.

    Attributes
    ----------
    code : TensorCode
    interface : Interface
    """

    def __init__(self, code: TensorCode, threads: int = 1) -> None:
        self.code = code
        interface = self.interface = code.interface
        self._team = Team(code, threads) if code.steps else None
        quick = is_readable() and self._team is None
        engine = Engine(code.ir + objects_ir(interface) if quick else code.ir, code.order.level)
        if self._team is None:
            self._function: Any = engine.function(interface.name, None, *[ctypes.c_void_p] * 3)
        else:
            self._function = self._team.function(engine)
        self._of_objects = builtin(engine, interface.name + SUFFIX) if quick else self._refuse
        self._is_single = len(interface.results) == 1
        self._scalars = any(not tensor.type.shape for tensor in interface.results)
        self._arenas = threading.local()

    def __call__(self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any = None) -> Any:
        """Results for arguments; `shine.tensor.TensorFunction` documents them."""
        if named:
            arguments = bound(self.interface, arguments, named)
        wanted = None if out is None else tuple(out) if isinstance(out, _SEVERAL) else (out,)
        try:
            arena = self._arenas.address
        except AttributeError:
            arena = self._new_arena()
        results = self._of_objects(arguments, wanted, arena)
        if results is None:
            results = self._of_any(arguments, wanted, arena)
        if out is not None:
            return out
        if self._scalars:
            results = tuple([array[()] for array in results])
        return results[0] if self._is_single else results

    def _of_any(self, arguments: tuple[Any, ...], results: tuple[Any, ...] | None, arena: int) -> tuple[AnyArray, ...]:
        """Results for arguments that are perhaps no arrays as they should be."""
        given = bound(self.interface, arguments, {})
        converted = tuple(argument(tensor, one) for tensor, one in zip(self.interface.arguments, given, strict=True))
        if results is None:
            results = tuple(np.empty(tensor.type.shape, tensor.type.numpy) for tensor in self.interface.results)
        else:
            check_outputs(self.interface, results, converted)
        self._run(converted, results, arena)
        return results

    def _run(self, arguments: Sequence[AnyArray], results: Sequence[AnyArray], arena: int) -> None:
        """Call the program with addresses, which takes longer to prepare."""
        given, made = (
            (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])
            for arrays in (arguments, results)
        )
        self._function(ctypes.addressof(given), ctypes.addressof(made), arena)

    def _new_arena(self) -> int:
        """Address of an arena for this thread."""
        self._arenas.memory = memory = np.empty(self.interface.arena_bytes + ALIGNMENT, np.uint8)
        self._arenas.address = address = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
        return int(address)

    @staticmethod
    def _refuse(*arguments: object) -> None:
        """Stands for the function that takes arrays where it cannot read them."""
