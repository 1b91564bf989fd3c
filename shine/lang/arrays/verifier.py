"""The allowlist of array formulas: that of the language, and elements, lengths and reductions of vectors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from shine.lang.arrays.formula import STEPS, Affine, Element, IntegerValue, Reduction, length_of
from shine.lang.forms.grammar import ExpressionVerifier, check_name, reject
from shine.lang.forms.names import Numbering, shown
from shine.lang.forms.tree import Primitive
from shine.lang.forms.visitor import Visit

Item = ast.expr | tuple["Item", ...]
"""An expression, or a tuple as `zip` and `enumerate` yield it."""


@dataclass(frozen=True)
class Iteration:
    """A loop, and its items.

    Parameters
    ----------
    start : Affine
    stops : tuple of Affine
        The loop ends before the first of them.
    step : int
    item : callable
        The item for a value of the loop variable.
    """

    start: Affine
    stops: tuple[Affine, ...]
    step: int
    item: Callable[[Affine], Item]

    def shifted(self) -> Iteration:
        """The same items for 0, 1, 2, ...; the step must be 1 or -1."""
        if self.step == 1 and self.start == Affine():
            return self
        counts = tuple((stop - self.start).times(self.step) for stop in self.stops)
        return Iteration(Affine(), counts, 1, lambda at: self.item(self.start + at.times(self.step)))


def of_vector(vector: str, lower: Affine, upper: Affine | None) -> Iteration:
    """The slice ``vector[lower:upper]``: as in Python, an upper number below 0 counts from the end."""
    length = length_of(vector)
    if upper is None:
        stops: tuple[Affine, ...] = (length,)
    else:
        stops = (length + upper,) if not upper.terms and upper.constant < 0 else (upper, length)
    return Iteration(lower, first_of(stops), 1, lambda at: Element(vector=vector, index=at))


def zipped(iterations: list[Iteration]) -> Iteration:
    """``zip`` of iterations with steps of 1 or -1."""
    same = {(each.start, each.step) for each in iterations}
    if same != {(Affine(), 1)}:
        iterations = [each.shifted() for each in iterations]
    stops = first_of(tuple(stop for each in iterations for stop in each.stops))
    return Iteration(Affine(), stops, 1, lambda at: tuple(each.item(at) for each in iterations))


def enumerated(iteration: Iteration, first: int) -> Iteration:
    """``enumerate(iteration, first)``; the step must be 1 or -1."""
    inner = iteration.shifted()
    return Iteration(inner.start, inner.stops, 1, lambda at: (IntegerValue(number=at.plus(first)), inner.item(at)))


def backwards(iteration: Iteration) -> Iteration:
    """``reversed(iteration)``; the step must be 1 or -1, and there must be one stop."""
    (stop,), step = iteration.stops, iteration.step
    return Iteration(stop.plus(-step), (iteration.start.plus(-step),), -step, iteration.item)


def first_of(stops: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Stops without those that another one always precedes."""
    least: dict[tuple[tuple[str, int], ...], int] = {}
    for stop in stops:
        least[stop.terms] = min(stop.constant, least.get(stop.terms, stop.constant))
    return tuple(Affine(terms, constant) for terms, constant in least.items())


REDUCTIONS = (*STEPS, "reduce")
"""Names of the calls that reduce a vector or a generator."""

_LINEAR = "whole numbers, loop variables, len(x), their sums and differences, and products with whole numbers"
_ITERABLES = "range(...), a vector, a slice such as x[1:] or x[:-1], zip, enumerate and reversed of these"
_FOLDS = {"mul": "prod", "add": "sum"}
_INDEX_NAMES = "i"

_Iterating = Generator[ast.AST, Any, Iteration]


class Indices:
    """Verified expressions that are whole numbers, linear in loop variables and lengths.

    Kept for a whole formula: an assigned name stands for its value.
    """

    def __init__(self) -> None:
        self._names: dict[str, Affine] = {}
        # The nodes are kept, so that no other node gets the identity of one.
        self._known: dict[int, tuple[ast.expr, Affine]] = {}

    def of(self, node: ast.expr) -> Affine | None:
        """The number that an expression is; None if it is another value."""
        match node:
            case IntegerValue():
                return node.number
            case ast.Constant(value=int() as value):
                return Affine(constant=value)
            case ast.Name(id=name):
                return self._names.get(name)
        return self._known.get(id(node), (node, None))[1]

    def assign(self, name: str, value: ast.expr) -> None:
        """Note that a name stands for a value."""
        number = self.of(value)
        if number is not None:
            self._names[name] = number

    def note(self, node: ast.BinOp) -> None:
        """Note the kind of a sum, difference or product of verified operands."""
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None:
            return
        if isinstance(node.op, ast.Add | ast.Sub):
            self._known[id(node)] = node, left + right if isinstance(node.op, ast.Add) else left - right
        elif isinstance(node.op, ast.Mult) and not (left.terms and right.terms):
            self._known[id(node)] = node, left.times(right.constant) if left.terms else right.times(left.constant)


class ArrayVerifier(ExpressionVerifier):
    """Verifies an expression of vectors and numbers, and rebuilds it in normal form.

    Parameters
    ----------
    primitives : mapping of str to Primitive
    names : mapping of str to str, optional
        As of `ExpressionVerifier`; vectors are among them.
    vectors : collection of str
    taken : collection of str
        Names that no loop variable gets that the formula does not name itself.
    indices : Indices
    """

    def __init__(
        self,
        primitives: Mapping[str, Primitive],
        names: Mapping[str, str | None] | None,
        vectors: Collection[str],
        taken: Collection[str],
        indices: Indices,
    ) -> None:
        super().__init__(primitives, names)
        self._vectors, self._taken, self._indices = vectors, taken, indices
        self._items: dict[str, ast.expr] = {}
        """Meanings of the loop variables of the enclosing reductions."""
        self._loops: dict[str, bool] = {}
        """The loop variables, and whether they are known to be 0 or more."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._items:
            self._count(node)
            return self._items[node.id]
        if node.id in self._vectors:
            reject(f"{shown(node.id)} is a vector; write an element {node.id}[i], or a reduction of it", node)
        if node.id == "n" and (self.names is None or "n" not in self.names) and len(self._vectors) == 1:
            self._count(node)
            return IntegerValue(number=length_of(self._vector(next(iter(self._vectors)), node)))
        return super().visit_Name(node)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        result = yield from super().visit_BinOp(node)
        self._indices.note(result)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        result = yield from super().visit_UnaryOp(node)
        if isinstance(result, ast.UnaryOp) and isinstance(result.op, ast.USub):
            number = self._indices.of(result.operand)
            return result if number is None else IntegerValue(number=number.times(-1))
        return result

    def visit_Subscript(self, node: ast.Subscript) -> Visit:
        self._count(node)
        if not isinstance(node.value, ast.Name) or node.value.id in self._items:
            reject("only a vector has elements: write its name before the brackets, x[i]", node)
        if isinstance(node.slice, ast.Slice):
            reject(f"a slice is no number; write a reduction of it, sum({node.value.id}[1:])", node)
        vector = self._vector(node.value.id, node.value)
        index = yield from self._linear(node.slice, f"the index of an element of {vector!r}")
        return Element(vector=vector, index=index)

    def visit_Call(self, node: ast.Call) -> Visit:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "len":
            return self._length(node)
        if name in ("sum", "prod", "reduce") or (name in STEPS and len(node.args) == 1):
            return (yield from self._reduction(name, node))
        return (yield from super().visit_Call(node))

    def _vector(self, name: str, node: ast.AST) -> str:
        """A name as that of a vector."""
        name = check_name(name, node)
        if name not in self._vectors or (self.names is not None and self.names.get(name, "") != name):
            reject(f"{shown(name)} is not a vector among the arguments", node)
        self.seen.add(name)
        return name

    def _linear(self, node: ast.expr, what: str) -> Generator[ast.AST, Any, Affine]:
        """A whole number that is linear in loop variables and lengths."""
        number = self._indices.of((yield node))
        if number is None:
            reject(f"{what} is made of {_LINEAR}", node)
        return number

    def _length(self, node: ast.Call) -> ast.expr:
        self._count(node)
        if len(node.args) != 1 or node.keywords:
            reject("len takes one vector", node)
        match node.args[0]:
            case ast.Name(id=name) as argument if name not in self._items:
                return IntegerValue(number=length_of(self._vector(name, argument)))
        reject("len takes a vector that is an argument: len(x)", node)

    def _reduction(self, name: str, node: ast.Call) -> Visit:
        self._count(node)
        kind, given, nonempty = self._kind(name, node)
        if isinstance(given, ast.GeneratorExp | ast.ListComp):
            if len(given.generators) != 1:
                reject("a reduction has one 'for'; put one reduction inside another", given)
            (part,) = given.generators
            neutral = {"sum": 0, "prod": 1}.get(kind)
            if (part.ifs and (neutral is None or nonempty)) or part.is_async:
                reject("'if' is part of sums and products only; write min(a if condition else b for ...)", given)
            iteration, target, body = (yield from self._iteration(part.iter)), part.target, given.elt
            for test in reversed(part.ifs):
                body = ast.copy_location(ast.IfExp(test, body, ast.Constant(neutral)), test)
        else:
            iteration, target, body = (yield from self._iteration(given)), None, None
        index = self._loop_name(target, iteration)
        items, self._items = self._items, dict(self._items)
        self._loops[index] = iteration.step > 0 and self._is_place(iteration.start)
        item = iteration.item(Affine.symbol(index))
        if target is not None:
            self._bind(target, item)
        if body is not None:
            term = yield body
        elif isinstance(item, tuple):
            reject(f"{kind} of tuples is not part of the language; write {kind}(a*b for a, b in zip(...))", given)
        else:
            term = item
        del self._loops[index]
        self._items = items
        return Reduction(
            kind=kind,
            index=index,
            start=iteration.start,
            stops=iteration.stops,
            step=iteration.step,
            nonempty=nonempty,
            body=term,
        )

    def _kind(self, name: str, node: ast.Call) -> tuple[str, ast.expr, bool]:
        """The kind of a reduction, its iterable, and whether it must have a term."""
        if node.keywords:
            reject(f"{name} takes no keyword arguments", node)
        if name != "reduce":
            kind, arguments = name, node.args
        else:
            fold = node.args[0] if node.args else None
            kind = _FOLDS.get(fold.id, "") if isinstance(fold, ast.Name) else ""
            if not kind:
                reject("reduce takes mul or add, what it runs over, and 1 or 0: reduce(mul, (x[i] for ...), 1)", node)
            arguments = node.args[1:]
        if not 1 <= len(arguments) <= 2 or any(isinstance(each, ast.Starred) for each in arguments):
            reject(f"{name} takes what it runs over: {name}(x), or {name}(x[i] for i in range(len(x)))", node)
        if len(arguments) == 2:
            first = {"sum": 0, "prod": 1}.get(kind)
            match arguments[1]:
                case ast.Constant(value=int() | float() as value) if value == first:
                    return kind, arguments[0], False
            reject(f"{name} begins with {first}; add another first value outside", arguments[1])
        return kind, arguments[0], kind in ("min", "max") or name == "reduce"

    def _loop_name(self, target: ast.expr | None, iteration: Iteration) -> str:
        """The name of the loop variable: the formula's own, if it names the variable."""
        own = isinstance(target, ast.Name) and isinstance(iteration.item(Affine()), IntegerValue)
        taken = set(self._loops) if own else {*self._loops, *self._taken}
        return Numbering(taken).take(target.id if own and isinstance(target, ast.Name) else _INDEX_NAMES)

    def _bind(self, target: ast.expr, item: Item) -> None:
        match target, item:
            case ast.Name(id=name), ast.expr():
                self._items[check_name(name, target)] = item
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), tuple()) if len(targets) == len(item):
                for each, part in zip(targets, item, strict=True):
                    self._bind(each, part)
            case _:
                wanted = f"{len(item)} names, as the items have parts" if isinstance(item, tuple) else "one name"
                reject(f"this 'for' needs {wanted}", target)

    def _iteration(self, node: ast.expr) -> _Iterating:
        """The loop that an iterable stands for."""
        self._count(node)
        match node:
            case ast.Name(id=name) if name not in self._items:
                return of_vector(self._vector(name, node), Affine(), None)
            case ast.Subscript(value=ast.Name(id=name) as value, slice=ast.Slice() as part) if name not in self._items:
                return (yield from self._slice(self._vector(name, value), part, node))
            case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]) if 1 <= len(arguments) <= 3:
                return (yield from self._range(arguments))
            case ast.Call(
                ast.Name("zip"), [_, *_] as arguments, [] | [ast.keyword("strict", ast.Constant(value=False))]
            ):
                parts = []
                for each in arguments:
                    parts.append((yield from self._steady(each)))
                return zipped(parts)
            case ast.Call(func=ast.Name(id="enumerate"), args=[each], keywords=[]):
                return enumerated((yield from self._steady(each)), 0)
            case ast.Call(func=ast.Name(id="enumerate"), args=[each, ast.Constant(value=int() as first)], keywords=[]):
                return enumerated((yield from self._steady(each)), first)
            case ast.Call(func=ast.Name(id="reversed"), args=[each], keywords=[]):
                inner = yield from self._steady(each)
                if len(inner.stops) != 1:
                    reject("the end of what is reversed must be one number or len(x)", node)
                return backwards(inner)
        reject(f"a reduction runs over {_ITERABLES}", node)

    def _steady(self, node: ast.expr) -> _Iterating:
        """An iteration with a step of 1 or -1."""
        iteration = yield from self._iteration(node)
        if abs(iteration.step) != 1:
            reject("inside zip, enumerate and reversed, a range has a step of 1 or -1", node)
        return iteration

    def _range(self, arguments: list[ast.expr]) -> _Iterating:
        what = "a bound of range"
        start = Affine() if len(arguments) == 1 else (yield from self._linear(arguments[0], what))
        stop = arguments[0 if len(arguments) == 1 else 1]
        ends = [stop]
        match stop:
            case ast.Call(func=ast.Name(id="min"), args=[_, _, *_] as several, keywords=[]):
                ends = several
        stops = []
        for each in ends:
            stops.append((yield from self._linear(each, what)))
        step = (yield from self._linear(arguments[2], "the step of range")) if len(arguments) == 3 else Affine((), 1)
        if step.terms or not step.constant:
            reject("the step of range is a whole number other than 0", arguments[2])
        if step.constant < 0 and len(stops) > 1:
            reject("a range backwards has one end", stop)
        return Iteration(start, first_of(tuple(stops)), step.constant, lambda at: IntegerValue(number=at))

    def _slice(self, vector: str, part: ast.Slice, node: ast.expr) -> _Iterating:
        if ast.unparse(part) == "::-1":
            return backwards(of_vector(vector, Affine(), None))
        bounds = []
        for each in (part.lower, part.upper):
            bounds.append(None if each is None else (yield from self._linear(each, "a bound of a slice")))
        lower, upper = bounds[0] or Affine(), bounds[1]
        if part.step is not None or not self._is_place(lower) or (upper and upper.terms and not self._is_place(upper)):
            reject(
                f"a slice is {vector}[a:b] with whole numbers or loop variables, a not below 0, or {vector}[::-1]; "
                f"write {vector}[i] for i in range(...)",
                node,
            )
        return of_vector(vector, lower, upper)

    def _is_place(self, number: Affine) -> bool:
        """Whether a number is known to be 0 or more."""
        return number.constant >= 0 and all(
            factor > 0 and self._loops.get(symbol, symbol.startswith("len(")) for symbol, factor in number.terms
        )
