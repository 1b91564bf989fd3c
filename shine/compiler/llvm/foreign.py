"""Foreign code: one function of LLVM IR or bitcode that another compiler made, in its simplest form.

LLVM ends the process on some malformed bitcode, and may take any time for a module. So another process, which has
limits, reads and optimizes foreign bytes; it returns the text of one function.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import llvmlite.binding as llvm

from shine.base.errors import CompilationError, GraphImportError
from shine.compiler.llvm.target import in_own_context, llvm_version, parse, target_machine

MAX_BYTES = 16_000_000
"""Largest file that is read."""

MAX_SECONDS = 30.0
"""Longest time that LLVM gets."""

_MAX_MEMORY = 4 << 30
"""Address space of the process, if the system can limit it. Python and LLVM alone take some hundred megabytes."""

_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_NOT_IR = {
    b"\x7fELF": "an object file or a program",
    b"\xcf\xfa\xed\xfe": "an object file or a program",
    b"!<arch>": "a library",
    b"\0asm": "a WebAssembly module",
}
"""Other files that compilers write, by their first bytes."""

_TRIPLE = "x86_64-unknown-linux-gnu"
"""The target of the optimization on every machine, so that a function is the same formula everywhere."""

_OPTIONS = ("-unroll-threshold=100000", "-unroll-full-max-count=10000", "-switch-to-lookup=false")
"""Unroll every loop of constant length, and make no lookup table of a switch: formulas have no loops and no memory."""

_QUOTED = r'"[^"]*"'
_ATTRIBUTES = re.compile(rf"{_QUOTED}|\b(?:noinline|optnone)\b")
_FLAGGED = re.compile(
    rf"{_QUOTED}|(?<= )(fadd|fsub|fmul|fdiv|frem|fneg|fcmp|fptrunc|fpext|select|phi|call)"
    r"((?: (?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b)+)"
)
_CONSTANT = re.compile(r"^@\S+ =(?: \w+)* constant (.*)", re.DOTALL)
_RELAXED = re.compile(r'"(?:unsafe-fp-math|no-nans-fp-math|no-infs-fp-math|no-signed-zeros-fp-math)"="true"')


@dataclass(frozen=True)
class ForeignFunction:
    """A function as LLVM prints it.

    Parameters
    ----------
    name : str
    returns : str
        Type of its result.
    arguments : tuple of (str, str)
        Type and name of each argument; the name is empty if the code has none.
    labels : tuple of str
        Names of the arguments in the body.
    body : str
        Its basic blocks, the entry first; every block and every value has a name.
    tables : mapping of str to str
        Type and initial value of each constant in memory that the body uses, by name.
    """

    name: str
    returns: str
    arguments: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    body: str
    tables: Mapping[str, str]


def foreign_function(content: bytes, name: str) -> ForeignFunction:
    """A function of a module, with local memory, calls of the module's own functions and short loops removed.

    Parameters
    ----------
    content : bytes
        LLVM IR as text, or bitcode.
    name : str

    Raises
    ------
    GraphImportError
        If the content is neither, LLVM cannot read it, or no function of this name is defined in it.
    """
    if len(content) > MAX_BYTES:
        raise GraphImportError(f"the LLVM module has {len(content)} bytes; at most {MAX_BYTES} are read")
    _check_kind(content)
    # The other process has to find the same modules, whatever folder this one was started in.
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from shine.compiler.llvm.foreign import main; main()"],
            input=json.dumps([name, MAX_SECONDS]).encode() + b"\n" + content,
            capture_output=True,
            timeout=MAX_SECONDS,
            env={**os.environ, "PYTHONPATH": path},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraphImportError(
            f"LLVM took longer than {MAX_SECONDS:g} s over function {name!r}; give it less code"
        ) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it gave no reason"]
        raise GraphImportError(f"LLVM gives up on the module: {last[0][:300]}") from None
    if "error" in answer:
        raise GraphImportError(answer["error"])
    arguments = tuple((kind, label) for kind, label in answer["arguments"])
    labels = tuple(answer["labels"])
    return ForeignFunction(name, answer["returns"], arguments, labels, answer["body"], answer["tables"])


def _check_kind(content: bytes) -> None:
    advice = "give LLVM IR (clang -S -emit-llvm, rustc --emit=llvm-ir) or bitcode (clang -c -emit-llvm)"
    if not content.strip():
        raise GraphImportError(f"the LLVM module is empty; {advice}")
    for magic, kind in _NOT_IR.items():
        if content.startswith(magic):
            raise GraphImportError(f"this is {kind}, not an LLVM module; {advice}")
    if not content.startswith(_BITCODE):
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            where = f"byte {error.start} is not UTF-8 text"
            raise GraphImportError(f"this is neither LLVM IR nor bitcode: {where}; {advice}") from None


def main() -> None:
    """Run in the other process: answer the question on standard input."""
    question, _, content = sys.stdin.buffer.read().partition(b"\n")
    name, seconds = json.loads(question)
    _limit(seconds)
    answer: dict[str, object]
    try:
        answer = _simplest(content, name)
    except (GraphImportError, CompilationError) as error:
        answer = {"error": " ".join(str(error).split())}
    json.dump(answer, sys.stdout)


def _limit(seconds: float) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # Unix alone has it

        for kind, limit in (
            (resource.RLIMIT_CPU, int(seconds) + 1),
            (resource.RLIMIT_AS, _MAX_MEMORY),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (limit, limit))


def _simplest(content: bytes, name: str) -> dict[str, object]:
    module = _read(content)
    defined = [function.name for function in module.functions if not function.is_declaration]
    if name not in defined:
        known = ", ".join(defined[:20]) + ", ..." * (len(defined) > 20)
        raise GraphImportError(f"the LLVM module defines no function {name!r}; it defines {known or 'none'}")
    module = parse(_plain(str(module)))
    function = module.get_function(name)
    arguments = [(str(argument.type), argument.name) for argument in function.arguments]
    returns = str(function.global_value_type).partition(" (")[0]
    for other in module.functions:
        if not other.is_declaration and other.name != name and other.linkage == llvm.Linkage.external:
            other.linkage = llvm.Linkage.internal  # LLVM drops internal functions that nothing calls
    _optimize(module)
    function = module.get_function(name)
    text = str(function)
    return {
        "arguments": arguments,
        "labels": [argument.name for argument in function.arguments],
        "returns": returns,
        "body": text[text.index("{\n") + 2 : text.rindex("}")],
        "tables": {
            variable.name: declared[1]
            for variable in module.global_variables
            if _named(variable.name, text) and (declared := _CONSTANT.search(str(variable)))
        },
    }


def _named(name: str, text: str) -> bool:
    return f"@{name}" in text or f'@"{name}"' in text


def _read(content: bytes) -> llvm.ModuleRef:
    if not content.startswith(_BITCODE):
        return parse(content.decode("utf-8"))
    try:
        module = in_own_context(llvm.parse_bitcode, content)
        module.verify()
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise GraphImportError(
            f"LLVM {llvm_version()} cannot read the bitcode, which is damaged or of a newer version: {reason}; "
            "try IR as text (-S -emit-llvm, --emit=llvm-ir)"
        ) from None
    return module


def _plain(text: str) -> str:
    """IR without the attributes that forbid inlining, and without fast-math flags.

    Fast-math flags allow LLVM to compute other results, which differ between its versions.
    """

    def kept(match: re.Match[str]) -> str:
        # LLVM does not know the other attribute, but a group must not be empty.
        return {"noinline": '"inline"', "optnone": ""}.get(match[0], match[0])

    def unflagged(match: re.Match[str]) -> str:
        return match[1] or match[0]

    lines = []
    for line in text.splitlines():
        if line.startswith(("define ", "attributes #")):
            line = _ATTRIBUTES.sub(kept, _RELAXED.sub('"strict"', line))
        elif line.startswith("  "):
            line = _FLAGGED.sub(unflagged, line)
        lines.append(line)
    return "\n".join(lines)


def _optimize(module: llvm.ModuleRef) -> None:
    for option in _OPTIONS:
        llvm.set_option("shine", option)
    machine = target_machine(_TRIPLE)
    module.triple = machine.triple
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = False
    tuning.loop_unrolling = True
    tuning.inlining_threshold = 100_000
    builder = llvm.create_pass_builder(machine, tuning)
    unused = llvm.create_new_module_pass_manager()
    unused.add_global_dead_code_eliminate_pass()
    unused.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    naming = llvm.create_new_module_pass_manager()
    naming.add_instruction_namer_pass()
    naming.run(module, builder)
