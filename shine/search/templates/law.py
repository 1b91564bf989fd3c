"""An individual of a template as formulas: its unknown functions, its parameters, and what they make together."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.lang.derivative import derivative
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import functions_of, tape_from_tree, tree_from_tape
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.templates.composition import Composition
from shine.search.templates.template import Template


def in_a_row(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The same as `for_known`, with the groups one after the other: for people to read."""
    tree: ast.expr = ast.Constant(float("nan"))
    for value, number in zip(reversed(values), reversed(numbers), strict=True):
        tree = _where(column, ast.Eq(), value, ast.Constant(float(number)), tree)
    return tree


def for_known(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The same as `by_group`, but NaN for values of the column that are no group."""
    pairs = zip(values, numbers, strict=True)
    return by_group(column, values, [in_a_row(column, [value], [number]) for value, number in pairs])


def by_group(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The expression whose value is the number of each row's group.

    Parameters
    ----------
    column : str
        Name of the column of groups.
    values : sequence of float
        Values of the column, ascending, one for each group. Other values of the column mean the nearest group; halfway
        between two, the lower one.
    numbers : sequence of float, or of ast.expr
        The number of each group, or what stands for it.

    Examples
    --------
    >>> ast.unparse(by_group("day", [1, 2, 4], [0.5, 0.7, 0.9]))
    '0.5 if day <= 1.5 else 0.7 if day <= 3.0 else 0.9'
    """
    if len(values) == 1:
        (only,) = numbers
        return only if isinstance(only, ast.expr) else ast.Constant(float(only))
    middle = len(values) // 2
    # Halves of large numbers are added, not halves of a sum that could overflow.
    border = values[middle - 1] / 2 + values[middle] / 2
    lower, upper = (
        by_group(column, values[:middle], numbers[:middle]),
        by_group(column, values[middle:], numbers[middle:]),
    )
    return _where(column, ast.LtE(), border, lower, upper)


def _where(column: str, comparison: ast.cmpop, value: float, yes: ast.expr, no: ast.expr) -> ast.expr:
    test = ast.Compare(ast.Name(column, ast.Load()), [comparison], [ast.Constant(float(value))])
    return ast.IfExp(test, yes, no)


@dataclass(frozen=True)
class Groups:
    """The groups of the data.

    Parameters
    ----------
    column : str
        Name of their column in formulas.
    values : tuple of float
        Values of the column, ascending: one for each group.
    labels : tuple of str, optional
        What the groups are called, if they have texts as names: the values number them.
    """

    column: str
    values: tuple[float, ...]
    labels: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str | float, ...]:
        """Label of each group: its text, or its number."""
        return self.values if self.labels is None else self.labels

    @property
    def names_as_texts(self) -> tuple[str, ...]:
        """Label of each group as text."""
        return tuple(f"{value:g}" for value in self.values) if self.labels is None else self.labels


@dataclass(frozen=True, eq=False)
class Law:
    """A template with all unknown functions and parameters found.

    Parameters
    ----------
    template : Template
    features : tuple of str
        Columns of the data, in their order.
    functions : mapping of str to Tree
        Formula of each unknown function, in its arguments.
    derivatives : mapping of str to Tree
        Formula of each derivative that the template calls.
    constants : mapping of str to float or ndarray of shape (n_groups,)
        Value of each parameter.
    groups : Groups, optional
    """

    template: Template
    features: tuple[str, ...]
    functions: Mapping[str, Tree]
    derivatives: Mapping[str, Tree]
    constants: Mapping[str, float | Floats]
    groups: Groups | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.template.outputs)

    def named(
        self, output: int = 0, of_tree: Callable[[Tree], Tree] = lambda tree: tree, *, readable: bool = False
    ) -> Tree:
        """The formula of an output, which calls the unknown functions by their names.

        Parameters
        ----------
        output : int
        of_tree : callable
            Changes each formula before it is written: rounds its constants, say.
        readable : bool
            Whether the values of parameters by group stand in a row, where there are not many groups; otherwise they
            are a balanced tree of comparisons.
        """
        body = self.template.outputs[output]
        called = {**self.functions, **self.derivatives}
        found = {
            name: Primitive(name, len(tree.parameters), replace(of_tree(tree), name=name))
            for name, tree in called.items()
            if name in self.template.calls
        }
        # Most groups whose values stand one after the other.
        listed = readable and self.groups is not None and len(self.groups.values) <= 50
        table = in_a_row if listed else for_known
        values = [(name, of_tree(Tree(self.features, self._value(name, table))).result) for name in self.constants]
        used = {node.id for part in _expressions(body) for node in ast.walk(part) if isinstance(node, ast.Name)}
        own = tuple((name, value) for name, value in values if name in used)
        return replace(
            body, parameters=self.features, assignments=(*own, *body.assignments), functions={**body.functions, **found}
        )

    def composed(self, output: int = 0) -> Tree:
        """The formula of an output with the unknown functions written out; parameters by group are assigned first."""
        own = {name: value for name, value in self.constants.items() if isinstance(value, float)}
        tree = self._inlined(output, own)
        used = tree.used_parameters
        grouped = tuple((name, self._value(name)) for name in self.constants if name not in own and name in used)
        return replace(tree, parameters=self.features, assignments=grouped)

    def shown(self, output: int = 0, of_tree: Callable[[Tree], Tree] = lambda tree: tree) -> str:
        """The formula of an output for people, with ``k[group]`` for a parameter by group."""
        own = {name: value for name, value in self.constants.items() if isinstance(value, float)}
        # Without the zeros and ones of functions that turned out to be nothing.
        return self.with_groups(of_tree(simplify(self._inlined(output, own), rounding=False)))

    def with_groups(self, tree: Tree) -> str:
        """The text of a tree, which it changes, with ``k[group]`` for a parameter by group."""
        grouped = [name for name, value in self.constants.items() if not isinstance(value, float)]
        rename = {name: f"{name}[{self.groups.column}]" for name in grouped if self.groups}
        for node in ast.walk(tree.result):
            if isinstance(node, ast.Name):
                node.id = rename.get(node.id, node.id)
        return tree.readable

    @cached_property
    def complexity(self) -> int:
        """Number of nodes of the searched part."""
        return sum(tree.size for tree in self.searched)

    @property
    def searched(self) -> tuple[Tree, ...]:
        """The unknown functions; without any, the outputs."""
        return tuple(self.functions.values()) or self.template.outputs

    @property
    def n_constants(self) -> int:
        """Number of constants of the unknown functions, and values of parameters that were fitted.

        A 1 in a function does not count: mostly it stands where a parameter leaves nothing to fit, as in
        ``a*1/(x + b)``.
        """
        written = [token for tree in self.functions.values() for token in tree.tokens[1:]]
        within = sum(kind == "constant" and float(value) != 1 for kind, value in written)
        fixed = {each.name for each in self.template.parameters if each.value is not None}
        return within + sum(np.size(value) for name, value in self.constants.items() if name not in fixed)

    def _value(self, name: str, table: Callable[..., ast.expr] = by_group) -> ast.expr:
        value = self.constants[name]
        if isinstance(value, float):
            return ast.Constant(value)
        assert self.groups is not None
        return table(self.groups.column, self.groups.values, value.tolist())

    def _inlined(self, output: int, constants: Mapping[str, float]) -> Tree:
        """An output with the unknown functions written out, and the values of some parameters."""
        body = self.template.outputs[output]
        own = {**self.functions, **self.derivatives}
        definitions = {name: tree for name, tree in own.items() if name in self.template.calls}
        names = (*self.features, *(name for name in self.constants if name not in constants))
        return inlined(body, definitions, names, constants)


def inlined(
    tree: Tree,
    definitions: Mapping[str, Tree],
    names: Sequence[str],
    constants: Mapping[str, float],
    free: Collection[str] = (),
) -> Tree:
    """A formula with calls replaced by definitions, and names by constants.

    Parameters
    ----------
    tree : Tree
    definitions : mapping of str to Tree
        What replaces the calls, by the name of the function.
    free : collection of str
        Parameters of definitions that are no arguments: they are among the names of the result.
    names : sequence of str
        Parameters of the result.
    constants : mapping of str to float
        Names that are replaced.
    """
    table = {**STANDARD, **tree.functions}
    for definition in definitions.values():
        table |= definition.functions
    used = set(functions_of(tree)).union(*map(functions_of, definitions.values())) - set(definitions)
    own = PrimitiveSet(tuple(table[name] for name in sorted(used)), tuple(names))
    arguments_of = {name: [each for each in tree.parameters if each not in free] for name, tree in definitions.items()}
    called = tuple(Primitive(name, len(each)) for name, each in arguments_of.items())
    outer = PrimitiveSet((*own.functions, *called), (*names, *constants))
    parts = {name: _nodes(each, PrimitiveSet(own.functions, each.parameters)) for name, each in definitions.items()}
    stack: list[list[_Node]] = []
    for name, value in _nodes(tree, outer):
        if name in definitions:
            count = len(arguments_of[name])
            arguments = dict(zip(arguments_of[name], stack[len(stack) - count :], strict=True))
            del stack[len(stack) - count :]
            made: list[_Node] = []
            for node in parts[name]:
                made += arguments.get(node[0], [node])
            stack.append(made)
        elif name in own.table:
            count = own.table[name].arity
            made = [node for operand in stack[len(stack) - count :] for node in operand]
            del stack[len(stack) - count :]
            stack.append([*made, (name, 0.0)])
        else:
            stack.append([("", constants[name])] if name in constants else [(name, value)])
    (nodes,) = stack
    numbers = {"": 0, **own.feature_codes, **own.function_codes}
    codes = np.array([numbers[name] for name, _ in nodes], np.int16)
    return tree_from_tape(codes, np.array([value for _, value in nodes]), own)


_Node = tuple[str, float]
"""Name of a function or a feature, empty for a constant; value of the constant."""


def _nodes(tree: Tree, primitives: PrimitiveSet) -> list[_Node]:
    tape = tape_from_tree(tree, primitives)
    names = ["", *primitives.features, *(function.name for function in primitives.functions)]
    return [(names[code], value) for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True)]


def _expressions(tree: Tree) -> list[ast.expr]:
    return [*(value for _, value in tree.assignments), tree.result]


def law_from(
    template: Template,
    features: Sequence[str],
    functions: Mapping[str, Tree],
    constants: Mapping[str, float | Floats],
    groups: Groups | None,
) -> Law:
    """A law of given functions and constants (see `Law`); the template is that of the columns."""
    derivatives = {}
    for name, (unknown, by) in template.calls.items():
        if by:
            tree = functions[unknown]
            for place in by:
                tree = derivative(tree, tree.parameters[place])
            derivatives[name] = simplify(tree, functions=COMPILED)
    return Law(template, tuple(features), functions, derivatives, constants, groups)


def law_of(composition: Composition, population: Population, index: int, groups: Groups | None) -> Law:
    """An individual as formulas."""
    individual = population.take(np.array([index]))
    forms = composition.functions_of(individual)
    called = dict(composition.template.calls)
    functions = {unknown.name: forms(unknown.name, ()) for unknown in composition.template.unknowns}
    derivatives = {
        name: simplify(forms(unknown, by), functions=COMPILED) for name, (unknown, by) in called.items() if by
    }
    first = int(individual.sizes[0]) - 1 - composition.n_leaves
    leaves = individual.values[0, first : first + composition.n_leaves]
    constants: dict[str, float | Floats] = {}
    offsets = {each.name: at for each, at in zip(composition.parameters, composition.offsets, strict=True)}
    for parameter in composition.template.parameters:
        if parameter.value is not None:
            constants[parameter.name] = float(parameter.value)
        elif parameter.by_group:
            at = offsets[parameter.name]
            constants[parameter.name] = leaves[at : at + composition.n_groups].copy()
        else:
            constants[parameter.name] = float(leaves[offsets[parameter.name]])
    return Law(composition.template, composition.features, functions, derivatives, constants, groups)
