"""Equations of a system as a fit sees them: which of their constants are one number, and which are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.search.models.model import Model
from shine.search.models.template_model import TemplateModel
from shine.search.templates.law import Law
from shine.search.templates.template import Parameter

KNOWN = ""
"""Name of a constant that is not fitted: a number that the user wrote."""

MARK = 2.0**40 + 0.25
"""Added to places that stand for constants: no whole or half exponent comes about, and nobody writes such numbers."""


@dataclass(frozen=True, eq=False)
class Equation:
    """The equation of a state.

    Parameters
    ----------
    model : Model
    names : tuple of str, optional
        Of its constants, in the order of the text: constants of one name are one number, in all equations of a system.
        Without them each is a number of its own.
    saved : int
        Nodes that are not described, as earlier equations have them.
    factors : tuple of float, optional
        What the number of a name is multiplied by to give each constant; 1 by default.
    """

    model: Model
    names: tuple[str, ...] | None = None
    saved: int = 0
    factors: tuple[float, ...] | None = None


def equations_of(model: Model) -> tuple[Equation, ...]:
    """The equations that a formula of a search stands for: one, or one for each output of a template."""
    if not isinstance(model, TemplateModel):
        return (Equation(_plain(model, model)),)
    outputs = (model,) if model.output is not None else model.outputs
    equations = []
    for number, each in enumerate(outputs):
        names, factors = _names(each.law, number if model.output is None else model.output)
        equations.append(Equation(_plain(each, model), names, factors=factors))
    return tuple(equations)


def unknowns_of(equations: Sequence[Equation], parameters: Mapping[str, Parameter]) -> Unknowns:
    """The unknowns of a system of equations, with the bounds of parameters."""
    numbers: dict[str, int] = {}
    found: list[int] = []
    factors: list[float] = []
    for place, equation in enumerate(equations):
        count = len(with_named_constants(equation.model.tree)[1])
        factors += equation.factors or [1.0] * count
        for name in equation.names or [f"{place}.{own}" for own in range(count)]:
            found.append(-1 if name == KNOWN else numbers.setdefault(name, len(numbers)))
    # The parameter of each name; that of a constant in a function, as ``f.0``, is none.
    bare = [name.split(":")[0] for name in numbers]
    bounds = [parameters[each].bounds if each in parameters else (-np.inf, np.inf) for each in bare]
    low, high = np.array(bounds).reshape(-1, 2).T
    return Unknowns(np.array(found, np.int64), low, high, np.array(factors) if set(factors) - {1.0} else None)


def name_of(parameter: str, run: int) -> str:
    """Name of the constant of a run."""
    return f"{parameter}:{run}"


def _plain(output: Model, whole: Model) -> Model:
    """A formula without its template: it is one like others from here on."""
    return Model(output.tree, whole.loss, whole.r2, whole.weights, digits=whole.digits)


def _names(law: Law, output: int) -> tuple[tuple[str, ...] | None, tuple[float, ...] | None]:
    """Names of the constants of an output, and factors, as -1 where a sign is part of one; None if neither is known."""
    written = with_named_constants(law.composed(output))[1].tolist()
    for every in (True, False):
        marked, names, values = _marked(law, every)
        found = with_named_constants(marked.composed(output))[1].tolist()
        if len(found) != len(written):
            continue
        known = {sign * (place + MARK): (names[place], sign) for place in range(len(names)) for sign in (1.0, -1.0)}
        own = [known.get(each, (KNOWN, 1.0)) for each in found]
        right = {each: sign * values[names.index(name)] for each, (name, sign) in known.items()}
        if all(right.get(each, each) == value for each, value in zip(found, written, strict=True)):
            factors = tuple(sign for _, sign in own)
            return tuple(name for name, _ in own), factors if set(factors) - {1.0} else None
    return None, None


def _marked(law: Law, every: bool) -> tuple[Law, list[str], list[float]]:
    """A law with marks for its constants, and the name and value of each; whole and half ones, which exponents of
    structure may be, are left if not every constant is marked."""
    names: list[str] = []
    values: list[float] = []

    def mark(name: str, value: float) -> float:
        if not every and (2 * value).is_integer():
            return value
        names.append(name)
        values.append(value)
        return len(names) - 1 + MARK

    trees = {}
    for name, tree in {**law.functions, **law.derivatives}.items():
        numbers = enumerate(with_named_constants(tree)[1].tolist())
        trees[name] = with_numbers(tree, [mark(f"{name}.{place}", value) for place, value in numbers])
    constants = dict(law.constants)
    for parameter in law.template.parameters:
        value = constants[parameter.name]
        if isinstance(value, float):
            constants[parameter.name] = value if parameter.value is not None else mark(parameter.name, value)
        else:
            runs = enumerate(value.tolist())
            marks = [mark(name_of(parameter.name, run), own) for run, own in runs]
            constants[parameter.name] = np.array(marks)
    functions = {name: trees[name] for name in law.functions}
    derivatives = {name: trees[name] for name in law.derivatives}
    return replace(law, functions=functions, derivatives=derivatives, constants=constants), names, values
