"""Templates for targets near the ends of float64's range: the search sees ordinary numbers.

The target is divided by a power of two, and so is each output. What the output is proportional to, such as both
functions of ``a*f(x) + g(x)``, is found as a multiple of the same power: else its constants would be as extreme as the
target, and their squares not finite. No digit changes by that.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.simplify.simplifier import simplify
from shine.search.models.template_model import TemplateModel
from shine.search.problem.scaling import Scaling
from shine.search.templates.law import law_from
from shine.search.templates.template import Parameter, Template

LARGEST = 1023
"""Exponent of the largest power of two of float64."""


@dataclass(frozen=True, eq=False)
class TemplateScaling:
    """The change of a template for a scaled target.

    Parameters
    ----------
    unscaled : Template
        The template in the units of the target.
    scaled : frozenset of str
        Unknown functions and parameters that are found as multiples of the power.
    target : Scaling
    """

    unscaled: Template
    scaled: frozenset[str]
    target: Scaling

    @classmethod
    def of(cls, template: Template, dataset: Dataset) -> TemplateScaling | None:
        """The scaling that a data set needs; None in most cases."""
        exponent = min(int(np.frexp(np.abs(dataset.target).max(initial=0.0))[1]), LARGEST)
        # Largest binary exponent of a target that needs no scaling: squares of its errors have digits to spare.
        if abs(exponent) <= 400:
            return None
        fitted = {each.name for each in template.parameters if each.value is None and not each.integer}
        found: set[str] = set()
        for output in template.outputs:
            found |= _Proportional(template, fitted, dict(output.assignments)).of(output.result)
        return cls(template, frozenset(found), Scaling({}, exponent))

    @property
    def factor(self) -> float:
        """The power of two."""
        return math.ldexp(1.0, self.target.target)

    @property
    def template(self) -> Template:
        """The template of the scaled target."""
        called = {name for name, (unknown, _) in self.unscaled.calls.items() if unknown in self.scaled}
        rewriting = _Rewriting(called, self.scaled, self.factor)
        outputs = []
        for output in self.unscaled.outputs:
            value = rewriting.visit(copy.deepcopy(output.result))
            assigned = tuple((name, rewriting.visit(copy.deepcopy(each))) for name, each in output.assignments)
            # Twice, because one divisor could be infinite, or subnormal.
            half = math.ldexp(1.0, -(self.target.target // 2))
            rest = math.ldexp(1.0, -(self.target.target - self.target.target // 2))
            result = _product(rest, _product(half, value))
            functions = {**output.functions, "mul": STANDARD["mul"]}
            outputs.append(replace(output, result=result, assignments=assigned, functions=functions))
        parameters = tuple(map(self._scaled_parameter, self.unscaled.parameters))
        return replace(self.unscaled, outputs=tuple(outputs), parameters=parameters)

    def _scaled_parameter(self, parameter: Parameter) -> Parameter:
        if parameter.name not in self.scaled:
            return parameter
        low, high = (end / self.factor for end in parameter.bounds)
        start = None if parameter.start is None else parameter.start / self.factor
        return replace(parameter, bounds=(low, high), start=start)

    def in_user_units(self, model: TemplateModel, degree: int) -> TemplateModel:
        """A model in the units of the target.

        Parameters
        ----------
        model : TemplateModel
        degree : int
            Power of the target's unit that the loss has.
        """
        law = model.law
        functions = {name: self._of_function(name, tree) for name, tree in law.functions.items()}
        constants: Mapping[str, float | Floats] = {
            name: value * self.factor if name in self.scaled else value for name, value in law.constants.items()
        }
        law = law_from(self.unscaled, law.features, functions, constants, law.groups)
        loss = self.target.loss(model.loss, degree)
        return replace(model, tree=law.composed(model.output or 0), law=law, loss=loss, basis=None)

    def _of_function(self, name: str, tree: Tree) -> Tree:
        if name not in self.scaled:
            return tree
        wide = replace(
            tree, result=_product(self.factor, tree.result), functions={**tree.functions, "mul": STANDARD["mul"]}
        )
        return simplify(wide, functions=COMPILED)


@dataclass(frozen=True)
class _Proportional:
    """Looks for functions and parameters that a value is proportional to, all together."""

    template: Template
    fitted: set[str]
    assigned: Mapping[str, ast.expr]

    def of(self, node: ast.expr) -> set[str]:
        """Their names; empty if there are none."""
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                return self._together(left, right)
            case ast.IfExp(_, yes, no):
                return self._together(yes, no)
            case ast.BinOp(left, ast.Mult(), right):
                # A function before a parameter: it has a scale of its own.
                first, other = (right, left) if isinstance(left, ast.Name) else (left, right)
                return self.of(first) or self.of(other)
            case ast.BinOp(left, ast.Div(), _):
                return self.of(left)
            case ast.UnaryOp(ast.USub(), operand):
                return self.of(operand)
            case ast.Call(ast.Name(name), _) if name in self.template.calls:
                return {self.template.calls[name][0]}
            case ast.Name(name) if name in self.assigned:
                return self.of(self.assigned[name])
            case ast.Name(name) if name in self.fitted:
                return {name}
        return set()

    def _together(self, one: ast.expr, other: ast.expr) -> set[str]:
        first, second = self.of(one), self.of(other)
        return first | second if first and second else set()


class _Rewriting(ast.NodeTransformer):
    """Writes multiples of a power in place of calls and parameters."""

    def __init__(self, called: set[str], parameters: frozenset[str], factor: float) -> None:
        self.called, self.parameters, self.factor = called, parameters, factor

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(each) for each in node.args]
        is_scaled = isinstance(node.func, ast.Name) and node.func.id in self.called
        return _product(self.factor, node) if is_scaled else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _product(self.factor, node) if node.id in self.parameters else node


def _product(factor: float, node: ast.expr) -> ast.expr:
    return ast.BinOp(ast.Constant(factor), ast.Mult(), node)
