"""A compiled tensor program that is called with arrays of NumPy."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.typing import AnyArray
from shine.compiler.llvm import Engine
from shine.compiler.llvm.builtins import builtin
from shine.compiler.llvm.object_layout import is_readable
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.arrays import argument, bound, check_outputs
from shine.tensor.native.code import TensorCode
from shine.tensor.native.objects import SUFFIX, objects_ir
from shine.tensor.native.team import Team

_SEVERAL = (tuple, list)


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
