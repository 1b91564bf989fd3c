"""Native code in this process: a module compiled by MCJIT, and its lifetime."""

from __future__ import annotations

import ctypes
import platform
import re
import weakref
from collections.abc import Callable, Iterable
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeVar

import llvmlite.binding as llvm

from shine.base.errors import CompilationError, placed
from shine.compiler.llvm.cache import cached
from shine.compiler.llvm.target import Optimizer, host_cpu, host_optimizer, parse, pipeline_level, target_machine

_DECLARATION = re.compile(
    r'^declare (?P<type>float|<\d+ x float>|double|<\d+ x double>) @"?llvm\.fma\.(?P<suffix>\w+)"?\(.*$', re.MULTILINE
)

# Lanes of 64 bits: the sum, the error of the sum (Knuth, 1969), and a step of one away from or towards zero.
_BODY = """\
define internal {f32} @shine.fma.{suffix}({f32} %a, {f32} %b, {f32} %c) nounwind {{
  %x = fpext {f32} %a to {f64}
  %y = fpext {f32} %b to {f64}
  %z = fpext {f32} %c to {f64}
  %product = fmul {f64} %x, %y
  %sum = fadd {f64} %product, %z
  %z.seen = fsub {f64} %sum, %product
  %product.seen = fsub {f64} %sum, %z.seen
  %z.lost = fsub {f64} %z, %z.seen
  %product.lost = fsub {f64} %product, %product.seen
  %lost = fadd {f64} %z.lost, %product.lost
  %bits = bitcast {f64} %sum to {i64}
  %lost.bits = bitcast {f64} %lost to {i64}
  %signs = xor {i64} %bits, %lost.bits
  %towards = icmp slt {i64} %signs, {zero}
  %step = select {i1} %towards, {i64} {down}, {i64} {one}
  %last = and {i64} %bits, {one}
  %is.even = icmp eq {i64} %last, {zero}
  %is.inexact = fcmp one {f64} %lost, {nothing}
  %changes = select {i1} %is.inexact, {i1} %is.even, {i1} {never}
  %stepped = add {i64} %bits, %step
  %odd = select {i1} %changes, {i64} %stepped, {i64} %bits
  %exact = bitcast {i64} %odd to {f64}
  %result = fptrunc {f64} %exact to {f32}
  ret {f32} %result
}}"""

_ROUNDED_TWICE = """\
define internal {f64} @shine.fma.{suffix}({f64} %a, {f64} %b, {f64} %c) alwaysinline nounwind {{
  %product = fmul {f64} %a, %b
  %sum = fadd {f64} %product, %c
  ret {f64} %sum
}}"""


def with_fma_defined(ir: str) -> str:
    """A module with functions in the place of the intrinsic ``llvm.fma``: of float32 with the same bits, of float64
    rounded twice."""

    def definition(match: re.Match[str]) -> str:
        lanes = re.match(r"<(\d+) x", match["type"])

        def of(element: str) -> str:
            return f"<{lanes[1]} x {element}>" if lanes else element

        def number(constant: int) -> str:
            return f"splat (i64 {constant})" if lanes else str(constant)

        return (_BODY if "float" in match["type"] else _ROUNDED_TWICE).format(
            f32=of("float"),
            f64=of("double"),
            i64=of("i64"),
            i1=of("i1"),
            suffix=match["suffix"],
            zero=number(0),
            one=number(1),
            down=number(-1),
            nothing="zeroinitializer" if lanes else "0.0",
            never="zeroinitializer" if lanes else "false",
        )

    text = _DECLARATION.sub(definition, ir)
    return re.sub(r'@"?llvm\.fma\.((?:v\d+)?f(?:32|64))"?', r"@shine.fma.\1", text)


@cache
def host_has_fma() -> bool:
    """Whether this processor has the instruction; only old x86 processors lack it."""
    return platform.machine().lower() not in ("x86_64", "amd64", "i686", "i386") or "+fma" in host_cpu()[1].split(",")


class Engine:
    """Compiled code of one module. Its functions keep it alive.

    Parameters
    ----------
    ir : str
        Textual LLVM IR; it must define every symbol it uses (LLVM ends the process otherwise).
    level : {"O0", "O1", "O2", "O3"} or int
        Optimization pipeline.
    selection : int, optional
        Effort of instruction selection, that of the pipeline by default.

    Raises
    ------
    CompilationError
        If the IR is not valid.
    """

    def __init__(self, ir: str, level: str | int = "O2", selection: int | None = None) -> None:
        module, machine = _compiled(ir, level, selection)
        defined = frozenset(f.name for f in module.functions if not f.is_declaration)
        self._hold(llvm.create_mcjit_compiler(module, machine), defined)

    @classmethod
    def of_object(cls, code: bytes, names: Iterable[str]) -> Self:
        """An engine for object code from `host_object`, which defines the functions `names`."""
        machine = target_machine(jit=True)
        module = parse("")
        module.triple = machine.triple
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        made = cls.__new__(cls)
        made._hold(engine, frozenset(names))
        return made

    @classmethod
    def kept(
        cls,
        names: Iterable[str],
        meaning: Iterable[str],
        text: Callable[[], object],
        level: Any = "O2",
        vectorize: bool = False,
    ) -> Self:
        """An engine for the functions `names`, whose code is kept under its `meaning`: see `cached`, `host_object`."""
        return cls.of_object(cached(meaning, lambda: host_object(str(text()), level, vectorize=vectorize)), names)

    def _hold(self, engine: llvm.ExecutionEngine, defined: frozenset[str]) -> None:
        engine.finalize_object()
        self._engine, self._defined = engine, defined
        self._finalizer = weakref.finalize(self, engine.close)

    def function(self, name: str, restype: Any, *argtypes: Any) -> Any:
        """A `ctypes` function that keeps this engine alive; calling it releases the GIL. Errors as of `address`."""
        function: Any = ctypes.CFUNCTYPE(restype, *argtypes)(self.address(name))
        function.engine = self
        return function

    def address(self, name: str) -> int:
        """Address of a function, valid while this engine lives.

        A `CompilationError` if the module has no such function, or the engine is closed.
        """
        # MCJIT ends the process if it is asked for a symbol it does not have.
        if not self._finalizer.alive or name not in self._defined:
            raise CompilationError(f"the module has no function {name!r}, or is closed")
        return int(self._engine.get_function_address(name))

    def close(self) -> None:
        """Free the machine code; the functions must not be called any more."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def host_object(ir: str, level: str | int = "O2", selection: int | None = None, vectorize: bool = False) -> bytes:
    """Object code of a module for this process, to be loaded by `Engine.of_object` here or in another one."""
    module, machine = _compiled(ir, level, selection, vectorize)
    return bytes(machine.emit_object(module))


def _compiled(
    ir: str, level: str | int, selection: int | None, vectorize: bool = False
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """A module optimized for this process, and the target machine to finish it."""
    speed = pipeline_level(level)
    module = parse(ir if host_has_fma() else with_fma_defined(ir))
    machine = target_machine(level=speed if selection is None else selection, jit=True)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    host_optimizer(speed, vectorize).run(module)
    return module, machine


T = TypeVar("T")


def _optimized(
    ir: str, triple: str | None, cpu: str | None, features: str, level: str | int
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    speed = pipeline_level(level)
    module = parse(ir)
    machine = target_machine(triple, cpu, features, speed)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    Optimizer(machine, speed).run(module)
    return module, machine


def optimized_ir(
    ir: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> str:
    """Textual IR after a pipeline has run for a target (see `shine.compiler.llvm.target.target_machine`)."""
    return str(_optimized(ir, triple, cpu, features, level)[0])


def assembly(
    ir: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> str:
    """Assembly of a module for a target, with its label and directive lines."""
    module, machine = _optimized(ir, triple, cpu, features, level)
    machine.set_asm_verbosity(False)
    return _emitted(machine.emit_assembly, module)


def object_code(
    ir: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> bytes:
    """Relocatable object file of a module for a target, in the target's own format."""
    module, machine = _optimized(ir, triple, cpu, features, level)
    return _emitted(machine.emit_object, module)


def _emitted(emit: Callable[[llvm.ModuleRef], T], module: llvm.ModuleRef) -> T:
    with placed(f"LLVM cannot emit code for {module.triple}", RuntimeError, kind=CompilationError):
        return emit(module)
