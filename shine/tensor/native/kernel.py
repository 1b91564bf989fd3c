"""A compiled tensor program that is called with arrays of NumPy."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shine.llvm import Engine
from shine.tensor.native.arrays import argument, bound, check_outputs
from shine.tensor.native.code import TensorCode
from shine.tensor.native.interface import ALIGNMENT
from shine.tensor.native.objects import DONE, SUFFIX, is_readable, objects_ir
from shine.tensor.native.team import Team
from shine.typing import AnyArray


class Kernel:
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
        engine = Engine(code.ir + objects_ir(interface) if quick else code.ir, code.level)
        pointers = [ctypes.c_void_p] * 3
        if self._team is None:
            self._function: Any = engine.function(interface.name, None, *pointers)
        else:
            self._function = self._team.function(engine)
        self._of_objects = (
            engine.function(interface.name + SUFFIX, ctypes.c_int32, *pointers) if quick else self._refuse
        )
        self._results = tuple((tensor.type.shape, tensor.type.numpy) for tensor in interface.results)
        self._scalars = any(not shape for shape, _ in self._results)
        self._arenas = threading.local()

    def __call__(self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any = None) -> Any:
        """Results for arguments; `shine.tensor.TensorFunction` documents them."""
        if named or len(arguments) != len(self.interface.arguments):
            arguments = bound(self.interface, arguments, named)
        results = self._new_results() if out is None else tuple(out) if isinstance(out, tuple | list) else (out,)
        try:
            arena = self._arenas.address
        except AttributeError:
            arena = self._new_arena()
        is_whole = len(results) == len(self._results)
        if not is_whole or self._of_objects(id(arguments), id(results), arena, out is not None) != DONE:
            converted = self._converted(arguments)
            if out is not None:
                check_outputs(self.interface, results, converted)
            self._run(converted, results, arena)
        if out is not None:
            return out
        if self._scalars:
            results = tuple([array[()] for array in results])
        return results if len(results) != 1 else results[0]

    def _new_results(self) -> tuple[AnyArray, ...]:
        return tuple([np.empty(shape, dtype) for shape, dtype in self._results])

    def _converted(self, arguments: Sequence[Any]) -> tuple[AnyArray, ...]:
        return tuple(argument(tensor, given) for tensor, given in zip(self.interface.arguments, arguments, strict=True))

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
    def _refuse(*addresses: int) -> int:
        """Stands for the function that takes arrays where it cannot read them."""
        return 0
