"""Derivatives of many tapes at once, by the table of partial derivatives.

The derivative of a node is a sum over its arguments of a partial derivative times the derivative of the argument
(forward mode). A rule for each function says of which tokens it consists: nodes, copies of the arguments and of the
function's own value, and derivatives of arguments. Round by round, all derivatives that are left are replaced by their
rules; the copies come last. A branch that is not taken contributes 0 times its derivative: NaN if that is infinite.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from shine.base.typing import Indices
from shine.lang.derivative import is_constant, partials
from shine.lang.forms.primitives import BASIC, CONSTANT, PrimitiveSet
from shine.lang.forms.tape import functions_of, tape_from_tree
from shine.lang.forms.tree import CONDITIONAL, Primitive, Tree
from shine.search.templates.tapes import LONGEST, Tapes, ranges, subtree_sizes

FIXED, VARIES, IS_ARGUMENT = 0, 1, 2
"""Dependence of a node on the argument: none, some, or the argument itself."""

_NODE, _COPY, _DERIVATIVE = 0, 1, 2

Token = tuple[int, int, float]
"""Kind, code or operand, value. The operand -1 is the function's own value."""


def functions_of_derivatives(functions: Iterable[Primitive], order: int) -> dict[str, Primitive]:
    """Functions that derivatives of some order of formulas of some functions consist of, with those, by name."""
    found = {function.name: function for function in functions}
    for _ in range(order):
        for function in list(found.values()):
            for tree in partials(function):
                if tree is not None:
                    found |= {name: tree.functions[name] for name in functions_of(tree)}
        found |= {name: BASIC[name] for name in ("add", "mul", "neg", CONDITIONAL)}
    return found


def derivatives(formulas: Tapes, argument: int, primitives: PrimitiveSet) -> Tapes:
    """The derivatives of formulas with respect to one of their arguments.

    Parameters
    ----------
    formulas : Tapes
    argument : int
        Its number, from 0.
    primitives : PrimitiveSet
        Of the composed formulas; it has the functions of `functions_of_derivatives`.
    """
    graph = _Graph(formulas, argument, primitives)
    n = len(formulas)
    roots = formulas.sizes - 1
    tokens = _Tokens.derivatives_at(np.arange(n), roots)
    while True:
        waiting = np.flatnonzero(tokens.kinds == _DERIVATIVE)
        if not len(waiting):
            return tokens.written(formulas, graph.sizes)
        tokens = graph.expanded(tokens, waiting).without_long(n)


@dataclass(frozen=True, eq=False)
class _Tokens:
    """Tokens of all individuals, one individual after the other."""

    owners: Indices
    kinds: Indices
    details: Indices
    """Code of a node; position of what is copied or differentiated."""
    values: np.ndarray = field(repr=False)

    @classmethod
    def derivatives_at(cls, owners: Indices, positions: Indices) -> _Tokens:
        return cls(owners, np.full(len(owners), _DERIVATIVE), positions, np.zeros(len(owners)))

    def without_long(self, n: int) -> _Tokens:
        """The tokens, and NaN instead of those of individuals with too many."""
        long = np.bincount(self.owners, minlength=n) > LONGEST
        if not long.any():
            return self
        kept = ~long[self.owners]
        # The first token of each long individual stays, as NaN.
        first = np.flatnonzero(~kept & np.append(True, self.owners[1:] != self.owners[:-1]))
        kept[first] = True
        kinds, details, values = self.kinds.copy(), self.details.copy(), self.values.copy()
        kinds[first], details[first], values[first] = _NODE, CONSTANT, np.nan
        return _Tokens(self.owners[kept], kinds[kept], details[kept], values[kept])

    def written(self, formulas: Tapes, sizes: Indices) -> Tapes:
        """The tapes that the tokens, nodes and copies, are."""
        width = formulas.codes.shape[1]
        copied = self.kinds == _COPY
        # The cells of the formulas, and after them one cell for each node.
        lengths = np.where(copied, sizes[self.owners, np.where(copied, self.details, 0)], 1)
        cells = self.owners * width + self.details - lengths + 1
        first = np.where(copied, cells, formulas.codes.size + np.arange(len(copied)))
        at = ranges(first, lengths)
        own = (
            np.where(copied, 0, self.details).astype(np.int16),
            self.values,
            np.full(len(copied), -1, np.int64),
            np.zeros(len(copied), np.bool_),
        )
        every = [np.concatenate([a.ravel(), b])[at] for a, b in zip(formulas.cells, own, strict=True)]
        total = np.bincount(self.owners, weights=lengths, minlength=len(formulas)).astype(np.int64)
        return Tapes.of_cells(every, total)


class _Graph:
    """The nodes of formulas: their subtrees, and how each depends on the argument."""

    def __init__(self, formulas: Tapes, argument: int, primitives: PrimitiveSet) -> None:
        codes, inside = formulas.codes, formulas.inside
        self.codes, self.primitives = codes, primitives
        self.sizes = subtree_sizes(codes, inside, primitives.arities)
        self.rules: dict[tuple[int, tuple[int, ...]], list[Token]] = {}
        n, width = codes.shape
        self.arities = np.where(inside & (codes > 0), primitives.arities[np.maximum(codes, 0)], 0)
        most = max(int(self.arities.max(initial=0)), 1)
        # Ends of the arguments, the first one first; arbitrary beyond a function's arity.
        self.operands = np.zeros((most, n, width), np.int64)
        rows = np.arange(n)[:, None]
        end = np.maximum(np.tile(np.arange(width) - 1, (n, 1)), 0)
        for back in range(most):
            place = self.arities - 1 - back
            for k in range(most):
                np.copyto(self.operands[k], end, where=place == k)
            end = np.maximum(end - self.sizes[rows, end], 0)
        self.depends = np.where(codes == -1 - argument, IS_ARGUMENT, FIXED).astype(np.int64)
        passes = self._passes(most)
        everyone = np.arange(n)
        for position in range(width):
            varies = np.zeros(n, np.bool_)
            for k in range(most):
                operand = self.depends[everyone, self.operands[k][:, position]]
                varies |= passes[k][np.maximum(codes[:, position], 0)] & (operand != FIXED)
            varies &= self.arities[:, position] > 0
            self.depends[varies, position] = VARIES

    def _passes(self, most: int) -> np.ndarray:
        """Whether a change of argument k changes the value of a function, shape (most, n_codes)."""
        found = np.zeros((most, len(self.primitives.arities)), np.bool_)
        for code in np.unique(self.codes[self.codes >= self.primitives.first_function]).tolist():
            for k, tree in enumerate(partials(self.primitives.function(code))):
                found[k, code] = tree is not None
        return found

    def expanded(self, tokens: _Tokens, waiting: Indices) -> _Tokens:
        """The tokens with the derivatives at some places replaced by their rules."""
        owners, positions = tokens.owners[waiting], tokens.details[waiting]
        codes, own = self.codes[owners, positions], self.depends[owners, positions]
        states = np.array([self.depends[owners, operand[owners, positions]] for operand in self.operands])
        # A rule belongs to a function and to how each of its arguments depends on the variable.
        states[np.arange(len(states))[:, None] >= self.arities[owners, positions]] = FIXED
        keys = np.column_stack([np.where(own == VARIES, codes, -1 - own), np.where(own == VARIES, states, 0).T])
        found, which = np.unique(keys, axis=0, return_inverse=True)
        which = which.ravel()
        rules = [self._rule(int(key[0]), tuple(key[1:].tolist())) for key in found]
        lengths = np.ones(len(tokens.kinds), np.int64)
        lengths[waiting] = np.array([len(rule) for rule in rules])[which]
        starts = np.cumsum(lengths) - lengths
        kinds, details, values = (np.repeat(a, lengths) for a in (tokens.kinds, tokens.details, tokens.values))
        for number, rule in enumerate(rules):
            here = which == number
            at, owner, position = starts[waiting[here]], owners[here], positions[here]
            for place, (kind, detail, value) in enumerate(rule):
                kinds[at + place], values[at + place] = kind, value
                if kind == _NODE:
                    details[at + place] = detail
                else:
                    details[at + place] = position if detail < 0 else self.operands[detail][owner, position]
        return _Tokens(np.repeat(tokens.owners, lengths), kinds, details, values)

    def _rule(self, code: int, states: tuple[int, ...]) -> list[Token]:
        if code < 0:
            return [(_NODE, CONSTANT, float(-1 - code == IS_ARGUMENT))]
        if (code, states) not in self.rules:
            self.rules[code, states] = _rule_of(self.primitives, code, states)
        return self.rules[code, states]


def _rule_of(primitives: PrimitiveSet, code: int, states: tuple[int, ...]) -> list[Token]:
    """The tokens of the derivative of a function whose arguments depend on the variable in some way."""
    function = primitives.function(code)

    def call(name: str) -> Token:
        return _NODE, primitives.function_codes[name], 0.0

    def derivative(k: int) -> list[Token]:
        if states[k] == VARIES:
            return [(_DERIVATIVE, k, 0.0)]
        return [(_NODE, CONSTANT, float(states[k] == IS_ARGUMENT))]

    if function.name == CONDITIONAL:
        return [(_COPY, 0, 0.0), *derivative(1), *derivative(2), call(CONDITIONAL)]
    terms = []
    for k, tree in enumerate(partials(function)):
        if tree is None or states[k] == FIXED:
            continue
        if is_constant(tree, 1):
            terms.append(derivative(k))
        elif is_constant(tree, -1):
            terms.append([*derivative(k), call("neg")])
        else:
            terms.append(_product(tree, primitives, derivative(k), states[k] == IS_ARGUMENT))
    rule = terms[0]
    for term in terms[1:]:
        rule = [*rule, *term, call("add")]
    return rule


def _product(tree: Tree, primitives: PrimitiveSet, derivative: list[Token], is_one: bool) -> list[Token]:
    """A partial derivative times the derivative of the argument, which counts for nothing where the former is 0."""
    match tree.result:
        case ast.IfExp(test=test, body=body, orelse=orelse) if not tree.assignments:
            parts = [Tree(tree.parameters, part, (), "part", tree.functions) for part in (test, body, orelse)]
            inner = [
                _tokens(part, primitives) if is_constant(part, 0) else _product(part, primitives, derivative, is_one)
                for part in parts[1:]
            ]
            last = _NODE, primitives.function_codes[CONDITIONAL], 0.0
            return [*_tokens(parts[0], primitives), *inner[0], *inner[1], last]
    if is_constant(tree, 1):
        return derivative
    if is_one:
        return _tokens(tree, primitives)
    return [*_tokens(tree, primitives), *derivative, (_NODE, primitives.function_codes["mul"], 0.0)]


def _tokens(tree: Tree, primitives: PrimitiveSet) -> list[Token]:
    """A formula of the arguments and the value of a function as tokens."""
    own = PrimitiveSet(primitives.functions, tree.parameters)
    tape, arity = tape_from_tree(tree, own), len(tree.parameters) - 1
    shift = len(own.features) - len(primitives.features)
    found: list[Token] = []
    for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True):
        if code == CONSTANT:
            found.append((_NODE, CONSTANT, value))
        elif code < own.first_function:
            found.append((_COPY, code - 1 if code - 1 < arity else -1, 0.0))
        else:
            found.append((_NODE, code - shift, 0.0))
    return found
