"""LLVM IR -> primitives: functions of C, Rust and other languages that compile to LLVM.

A function is *lifted*: its LLVM IR becomes a formula of the language, which defines a composite primitive. So it works
in all tiers, derivatives and exports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from keyword import iskeyword
from pathlib import Path
from typing import TypeVar

from shine.base.errors import GraphImportError, placed, reason
from shine.compiler.llvm.foreign import MAX_BYTES, ForeignFunction, foreign_function
from shine.formats.read.llvmir.flow import ALWAYS, EXIT, Conditions, order
from shine.formats.read.llvmir.rules import RULES
from shine.formats.read.llvmir.scope import EXACT_BITS, FLAGS, SUPPORTED_TYPES, Number, Scope, Undefined, Value
from shine.formats.read.llvmir.text import Block, Cursor, Instruction, blocks
from shine.lang.forms.grammar import NAMED_CONSTANTS
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive, Tree

T = TypeVar("T")

_MEMORY = "it uses memory that remains after optimization; a formula has none, only local variables"
_EXCEPTIONS = "it raises or handles exceptions, which a formula cannot; compile without them (Rust: -C panic=abort)"
_ADVICE: dict[str, str] = {
    **dict.fromkeys(("alloca", "store", "cmpxchg", "atomicrmw", "fence"), _MEMORY),
    **dict.fromkeys(("invoke", "resume", "landingpad", "catchswitch", "cleanupret", "catchret"), _EXCEPTIONS),
    "fptoui": "conversions to unsigned integers are not supported; convert to int",
    "ashr": "shifts to the right are not supported",
    "sdiv": "divisions of integers are not supported; convert them to floating-point numbers before",
    "udiv": "divisions of integers are not supported; convert them to floating-point numbers before",
    "srem": "remainders of integers are not supported",
    "urem": "remainders of integers are not supported",
}
"""Advice for instructions that the language cannot express."""

_LABEL = re.compile(r'label %("[^"]*"|[-\w.$]+)')


class Lifter(Scope):
    """Translates the instructions of a function."""

    def lift(self, blocks: Sequence[Block], arguments: Mapping[str, str], name: str) -> Tree:
        """The formula that a function computes.

        Parameters
        ----------
        blocks : sequence of Block
        arguments : mapping of str to str
            Name in the formula of each argument, by its name in the code.
        name : str
            Name of the formula.

        Raises
        ------
        GraphImportError
            If there is a loop, or an instruction that the language cannot express.
        """
        for label, parameter in arguments.items():
            self.values[label] = (Number(self.graph.parameter(parameter)),)
        by_name = {block.name: block for block in blocks}
        successors = self._successors(by_name)
        edges: dict[tuple[str, str], int] = {}
        conditions = Conditions(successors, edges, self.both, self.either)
        results: dict[str, Value] = {}
        for label in list(successors)[:-1]:
            incoming = conditions.incoming(label) if label != blocks[0].name else []
            *straight, last = by_name[label].instructions
            for instruction in straight:
                value = self._explained(instruction, self._value, instruction, incoming)
                if value is not None:
                    self.values[instruction.result] = value
            if last.opcode == "ret":
                results[label] = self._explained(last, self._operand, last)
            for target, condition in self._explained(last, self._jumps, last, set(successors[label])):
                edges[label, target] = condition
        chosen = self.choose([(condition, results[label]) for label, condition in conditions.incoming(EXIT)])
        tree = self.graph.write([self.number(chosen[0])], tuple(arguments.values()), name)[0]
        if isinstance(tree.result, ast.Name) and tree.assignments and tree.result.id == tree.assignments[-1][0]:
            tree = replace(tree, result=tree.assignments[-1][1], assignments=tree.assignments[:-1])
        return tree

    def _successors(self, blocks: Mapping[str, Block]) -> dict[str, tuple[str, ...]]:
        """Successors of each block that may return; each block comes after its predecessors."""
        targets: dict[str, tuple[str, ...]] = {}
        for name, block in blocks.items():
            last = block.instructions[-1]
            targets[name] = (EXIT,) if last.opcode == "ret" else tuple(dict.fromkeys(_LABEL.findall(last.operands)))
            if last.opcode not in ("ret", "br", "switch", "unreachable"):
                self._explained(last, self._value, last, [])
        targets[EXIT] = ()
        ordered = order(targets, next(iter(blocks)))
        returning = {EXIT}
        for name in reversed(ordered):
            if any(target in returning for target in targets[name]):
                returning.add(name)
        for name in ordered:
            # Paths that never return are ignored, unless they have an effect, such as reporting an error.
            if name not in returning:
                for instruction in blocks[name].instructions:
                    if instruction.opcode in ("call", "invoke", "store"):
                        self._explained(instruction, self._value, instruction, [])
        if next(iter(blocks)) not in returning:
            raise GraphImportError("it never returns")
        kept = [name for name in ordered if name in returning and name != EXIT]
        return {name: tuple(t for t in targets[name] if t in returning) for name in [*kept, EXIT]}

    def _explained(self, instruction: Instruction, action: Callable[..., T], *arguments: object) -> T:
        """The result of an action; its error names the instruction."""
        try:
            return action(*arguments)
        except GraphImportError as error:
            shown = instruction.text if len(instruction.text) <= 120 else instruction.text[:120] + "..."
            raise GraphImportError(f"instruction '{shown}': {error}") from None

    def _value(self, instruction: Instruction, incoming: list[tuple[str, int]]) -> Value | None:
        if instruction.opcode == "phi":
            return self._phi(Cursor(instruction.operands), dict(incoming))
        rule = RULES.get(instruction.opcode)
        if rule is None:
            raise GraphImportError(
                _ADVICE.get(instruction.opcode, f"{instruction.opcode!r} has no meaning in a formula")
            )
        return rule(self, Cursor(instruction.operands))

    def _operand(self, instruction: Instruction) -> Value:
        cursor = Cursor(instruction.operands)
        return self.read(cursor, cursor.type())

    def _phi(self, cursor: Cursor, incoming: Mapping[str, int]) -> Value:
        cursor.skip(*FLAGS)
        kind, choices = cursor.type(), []
        while True:
            cursor.expect("[")
            # The value from an ignored path was never computed.
            token = cursor.next
            known = not token.startswith("%") or token[1:] in self.values
            value = self.read(cursor, kind) if known else (Undefined(),) * kind.lanes
            if not known:
                cursor.take()
            cursor.expect(",")
            label = cursor.name()
            cursor.expect("]")
            if label in incoming:
                choices.append((incoming[label], value))
            if cursor.next != ",":
                return self.choose(choices)
            cursor.take()

    def _jumps(self, last: Instruction, kept: set[str]) -> Iterator[tuple[str, int]]:
        """The blocks that an instruction jumps to, each with its condition."""
        if len(kept) == 1:
            return iter([(next(iter(kept)), ALWAYS)])
        conditions: dict[str, int] = {}
        for target, condition in (self._branch if last.opcode == "br" else self._switch)(Cursor(last.operands)):
            conditions[target] = self.either(conditions[target], condition) if target in conditions else condition
        return iter([(target, condition) for target, condition in conditions.items() if target in kept])

    def _branch(self, cursor: Cursor) -> Iterator[tuple[str, int]]:
        test = self.truth(self.read(cursor, cursor.type())[0])
        cursor.expect(",")
        yield cursor.label(), test
        cursor.expect(",")
        yield cursor.label(), self.opposite(test)

    def _switch(self, cursor: Cursor) -> Iterator[tuple[str, int]]:
        kind = cursor.type()
        subject = self.integer(self.read(cursor, kind)[0])
        cursor.expect(",")
        otherwise, cases = cursor.label(), []
        cursor.expect("[")
        while cursor.next != "]":
            case = self.integer(self.read(cursor, cursor.type())[0])
            cursor.expect(",")
            cases.append(self.graph.apply("eq", subject.node, case.node))
            yield cursor.label(), cases[-1]
        if not cases:
            raise GraphImportError("a switch without cases is not understood")
        some = cases[0]
        for case_holds in cases[1:]:
            some = self.either(some, case_holds)
        yield otherwise, self.opposite(some)


__all__ = ["primitive_from_llvm"]

MAX_SIZE = 2000
"""Most nodes of a lifted function."""

MAX_ARGUMENTS = 26
"""Most arguments of a function."""


def primitive_from_llvm(source: str | Path | bytes, function: str, name: str | None = None) -> Primitive:
    """A function in LLVM IR or bitcode as a primitive.

    Parameters
    ----------
    source : str, Path or bytes
        A file or its content: IR as text (``clang -S -emit-llvm``, ``rustc --emit=llvm-ir``) or bitcode (``clang -c
        -emit-llvm``). Text of several lines is IR, other text a path.
    function : str
        Name of the function. Its arguments and its result must all be doubles, or all floats.
    name : str, optional
        Name in formulas; the function's own name by default.

    Returns
    -------
    Primitive
        A composite primitive whose definition computes the function, in the number type of the kernel. If the function
        only adds, subtracts, multiplies, divides, takes roots, rounds, compares and chooses, float64 results equal
        those of the compiled function bit for bit.

    Raises
    ------
    GraphImportError
        If the source cannot be read, or the function does something that a formula cannot: access memory, loop as often
        as an argument says, call unknown functions. The message names the instruction.
    ValueError
        If the name is not a name, or belongs to one of Shine's primitives.

    Examples
    --------
    >>> code = '''
    ... define double @leg(double %a, double %b) {
    ...   %x = fmul double %a, %a
    ...   %y = fmul double %b, %b
    ...   %z = fsub double %x, %y
    ...   ret double %z
    ... }'''
    >>> print(primitive_from_llvm(code, "leg").definition)
    a*a - b*b
    """
    chosen = function if name is None else name
    if not chosen.isidentifier() or iskeyword(chosen) or chosen.startswith("__"):
        raise ValueError(f"{chosen!r} is not a name that formulas can use; give the primitive another one: name=...")
    if chosen in STANDARD or chosen in NAMED_CONSTANTS:
        raise ValueError(f"{chosen!r} is one of Shine's own names; give the primitive another one: name=...")
    foreign = foreign_function(_content(source), function)
    with placed(f"LLVM function {function!r}", GraphImportError):
        return lifted(foreign, chosen)


def _content(source: str | Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | Path):
        raise TypeError(f"source is a path, text or bytes, not {type(source).__name__}")
    if isinstance(source, str) and "\n" in source:
        return source.encode("utf-8", "surrogateescape")
    errors = OSError, ValueError  # the second for a NUL byte in the path
    with placed(f"{source}: cannot be read", *errors, kind=GraphImportError, told=reason), open(source, "rb") as file:
        return file.read(MAX_BYTES + 1)


def lifted(foreign: ForeignFunction, name: str) -> Primitive:
    """The primitive of a function that LLVM has simplified; a `GraphImportError` if a formula cannot compute it."""
    kind = foreign.returns
    if kind not in EXACT_BITS:
        raise GraphImportError(f"its result has type {kind}; {SUPPORTED_TYPES}")
    for position, (other, label) in enumerate(foreign.arguments, start=1):
        if other != kind:
            shown = f" ({label})" if label else ""
            raise GraphImportError(f"argument {position}{shown} has type {other}, the result {kind}; {SUPPORTED_TYPES}")
    if not 1 <= len(foreign.arguments) <= MAX_ARGUMENTS:
        raise GraphImportError(
            f"it has {len(foreign.arguments)} arguments; a primitive has at least one and at most {MAX_ARGUMENTS}"
        )
    parameters = _parameters([label for _, label in foreign.arguments])
    lifter = Lifter(kind, foreign.tables)
    definition = lifter.lift(blocks(foreign.body), dict(zip(foreign.labels, parameters, strict=True)), name)
    if definition.size > MAX_SIZE:
        raise GraphImportError(f"it becomes a formula of {definition.size} nodes; at most {MAX_SIZE} make a primitive")
    return Primitive(name, len(parameters), definition)


def _parameters(labels: Sequence[str]) -> list[str]:
    """Names of the arguments: their own if formulas can use them all, else ``a, b, ...``."""
    usable = all(label.isidentifier() and not iskeyword(label) and not label.startswith("__") for label in labels)
    if usable and not {*labels} & {*STANDARD, *NAMED_CONSTANTS}:
        return list(labels)
    return [chr(ord("a") + position) for position in range(len(labels))]
