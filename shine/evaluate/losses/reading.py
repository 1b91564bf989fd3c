"""A loss as users give it -> a `Loss`: a name, a built-in one with its numbers, or a function of theirs."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

from shine.base.errors import UnsupportedSyntaxError
from shine.evaluate.losses.form import LOSSES, SIGMA, WEIGHT, Loss, RowLoss
from shine.evaluate.losses.library import LIBRARY, SHARES, SIGNS, BuiltIn
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, similar, value_text
from shine.lang.forms.printing import definition_source
from shine.lang.forms.synonyms import LOSS_ARGUMENTS, OTHER_LOSSES, SHORT_LOSS_ARGUMENTS
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse
from shine.lang.presentation import definition, is_short_definition
from shine.lang.python.functions import Functions
from shine.lang.python.known import OWN_MEANINGS
from shine.lang.values import ValueGraph

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)

LossSource = str | Callable[..., object] | Loss
"""Forms of a loss; see `loss_from`."""

PREDICTION, TARGET, RESIDUAL = "prediction", "target", "residual"

POSITIONS = (PREDICTION, TARGET, WEIGHT)
"""Meanings of the arguments of PySR's losses, by their order."""


def loss_from(source: object, loss_columns: Collection[str] = ()) -> Loss:
    """The loss that a user gives.

    Parameters
    ----------
    source : str, function or Loss
        A name, ``"mse"``; a built-in loss with its numbers, ``"quantile(0.9)"``; a function of `prediction`, `target`,
        `weight` and columns beside the data, as a Python function or as text. PySR's ``"f(p, t) = abs(p - t)^1.5"`` and
        the arguments of other libraries, such as `y_pred` and `y_true`, are understood (see `SHORT_LOSS_ARGUMENTS`).
    loss_columns : collection of str
        Names of the columns beside the data. With `sigma` among them, built-in losses of the residual divide it by
        that.

    Raises
    ------
    ValueError
        If there is no such loss, or a number of it is not allowed.
    UnsupportedSyntaxError
        If the function is not in the language, or lacks the arguments.
    TypeError
        If it is something else.
    """
    return _loss(loss_text(source), SIGMA in loss_columns)


def loss_text(source: object) -> str:
    """A loss as text that `loss_from` reads: its name, or the definition of its function, which calls no other
    functions of the user's."""
    if isinstance(source, Loss):
        if (source.name in LOSSES and LOSSES[source.name] == source) or built_in_of(source) is not None:
            return source.name
        definition = source.kind.function.definition
        assert definition is not None
        return _definition_text(definition)
    if isinstance(source, str):
        if not _is_definition(source):
            name, numbers = call_of(source)
            return call_text(name, numbers)
        return _definition_text(_of_function(source))
    if not callable(source):
        raise TypeError(
            f"loss must be a name, such as 'mse' or 'quantile(0.9)', or a function, is {value_text(source)}"
        )
    named = getattr(source, "loss_name", None)  # a built-in loss without its numbers, as in shine.losses.poisson
    return loss_text(named) if isinstance(named, str) else _definition_text(_of_function(source))


def built_in_of(loss: Loss) -> BuiltIn | None:
    """The row of the library behind a loss; None for others."""
    built_in = LIBRARY.get(loss.name.split("(")[0])
    if built_in is None:
        return None
    # A function of the user's may have the same name.
    own = (_loss(loss.name, of_sigma).kind.function for of_sigma in (False, True))
    return built_in if loss.kind.function in own else None


def predicts_classes(loss: Loss) -> bool:
    """Whether predictions are odds or scores of classes, which have no unit."""
    built_in = built_in_of(loss)
    return built_in is not None and built_in.values.get("target") in (SHARES, SIGNS)


@cache
def _loss(text: str, of_sigma: bool) -> Loss:
    if _is_definition(text):
        tree = parse(text)
        return Loss(
            tree.name, RowLoss(tree.name, Primitive(tree.name, len(tree.parameters), tree), tree.parameters[2:])
        )
    name, numbers = call_of(text)
    return LOSSES[name] if name in LOSSES else Loss(text, _built_in(name, numbers, of_sigma))


def _built_in(name: str, numbers: tuple[float, ...], of_sigma: bool) -> RowLoss:
    own = LIBRARY[name]
    tree = parse(own.definition)
    graph, parameters = ValueGraph(), [PREDICTION, TARGET]
    divided = False
    if tree.parameters[0] == RESIDUAL:
        value = graph.apply("sub", graph.parameter(PREDICTION), graph.parameter(TARGET))
        divided = of_sigma
        if divided:
            parameters.append(SIGMA)
            value = graph.apply("div", value, graph.parameter(SIGMA))
        arguments = [value]
    else:
        data = tree.parameters[: len(tree.parameters) - len(numbers)]
        parameters += [each for each in data if each not in parameters]
        arguments = [graph.parameter(each) for each in data]
    arguments += [graph.constant(number) for number in numbers]
    (bound,) = graph.write([graph.read(tree, arguments, STANDARD)], parameters, name)
    return RowLoss(
        call_text(name, numbers),
        Primitive(name, len(parameters), bound),
        tuple(parameters[2:]),
        least=0.0,
        log_likelihood=own.of_sigma if divided else own.likelihood,
        degree=None if divided else own.degree,
    )


def _is_definition(text: str) -> bool:
    return re.match(r"\s*(def|lambda|@)\b|\s*@|.*\n", text) is not None or is_short_definition(text)


def _definition_text(tree: Tree) -> str:
    return definition_source(tree.name, tree.parameters, tree.assignments, tree.result)


def _of_function(source: Any) -> Tree:
    """A user's function as a tree of `prediction`, `target`, and columns beside the data in the order of its own."""
    functions = Functions(OWN_MEANINGS, dict(STANDARD))
    try:
        if isinstance(source, str):
            own = functions.table[functions.of_text(definition(source))]
        else:
            if not isinstance(source, FunctionType | partial):
                raise UnsupportedSyntaxError(
                    f"it is a {type(source).__name__}; write a function of one row, "
                    "'def name(prediction, target): ...'; a fitness of gplearn takes all rows at once"
                )
            given = _arguments(source)
            own = functions.table[functions.primitive(source, len(given), _name(source))]
    except UnsupportedSyntaxError as error:
        raise _explained(error) from None
    tree = own.definition
    if tree is None:
        raise UnsupportedSyntaxError(f"{own.name} is no loss; {ARGUMENTS}")
    if isinstance(source, str):
        given = list(tree.parameters)
    names = _meanings(given, in_order=isinstance(source, str) and is_short_definition(source))
    _check_arguments(names)
    graph, name = ValueGraph(), tree.name if tree.name.isidentifier() else "loss"
    value = graph.read(tree, [graph.parameter(each) for each in names], STANDARD)
    parameters = [PREDICTION, TARGET, *(each for each in names if each not in (PREDICTION, TARGET))]
    return graph.write([value], parameters, name)[0]


def _name(source: Any) -> str:
    name = str(getattr(source, "__name__", "loss"))
    return name if name.isidentifier() else "loss"


ARGUMENTS = "the arguments of a loss are prediction, target, weight, and names of columns beside the data"


def _arguments(source: Any) -> list[str]:
    """Names of the arguments of a Python function that have no value."""
    parameters = signature(source, follow_wrapped=False).parameters.values()
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is Parameter.empty]


def _meanings(arguments: list[str], in_order: bool) -> list[str]:
    """The names that arguments have here; `in_order` says whether they have PySR's order, whatever their names."""
    names = [LOSS_ARGUMENTS.get(each, each) for each in arguments]
    if PREDICTION in names:
        return names
    meant = [SHORT_LOSS_ARGUMENTS.get(each, each) for each in names]
    if PREDICTION in meant:
        free = {*POSITIONS} - {*names}
        return [meaning if meaning in free else each for each, meaning in zip(names, meant, strict=True)]
    return list(POSITIONS[: len(names)]) if in_order and 2 <= len(names) <= len(POSITIONS) else names


def _check_arguments(names: list[str]) -> None:
    if PREDICTION not in names:
        raise UnsupportedSyntaxError(f"a loss has an argument prediction; it has {listed(names)}; {ARGUMENTS}")
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice:
        raise UnsupportedSyntaxError(f"two arguments of the loss mean {twice}; {ARGUMENTS}")


def _explained(error: UnsupportedSyntaxError) -> UnsupportedSyntaxError:
    """The same error with the properties of a loss."""
    text = f"the loss cannot be compiled: {error.message}"
    return UnsupportedSyntaxError(text, error.line, error.column, error.file)


def call_of(text: str) -> tuple[str, tuple[float, ...]]:
    """The name of a loss and its numbers, all of them, in their order.

    A `ValueError` if there is no such loss, or a number is missing, unknown or outside its bounds.
    """
    found = _CALL.fullmatch(text)
    name = found[1] if found else text.strip()
    if name in LOSSES and found and not found[2]:
        return name, ()
    if found is None or name not in LIBRARY:
        near = OTHER_LOSSES.get(name.replace(" ", "_")) or similar(name, [*LOSSES, *LIBRARY])
        hint = f"did you mean {near!r}? " if near else ""
        raise ValueError(
            f"unknown loss {value_text(text.strip())}; {hint}use one of {', '.join([*LOSSES, *LIBRARY])}, "
            "or a function, 'def name(prediction, target): ...'"
        )
    try:
        node = ast.parse(f"f{found[2] or '()'}", mode="eval").body
        assert isinstance(node, ast.Call)
        given = [ast.literal_eval(each) for each in node.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise ValueError(f"{value_text(text.strip())} is not a loss with numbers in brackets; {_usage(name)}") from None
    return name, numbers_of(name, given, named)


def numbers_of(name: str, given: Sequence[object], named: Mapping[str, object]) -> tuple[float, ...]:
    """The numbers of a built-in loss from those given by position and by name; see `call_of` for the errors."""
    numbers = LIBRARY[name].numbers
    known = list(numbers)
    if len(given) > len(known):
        raise ValueError(f"the loss {name} has {len(given)} number{'s' * (len(given) > 1)}; {_usage(name)}")
    values: dict[str, object] = dict(zip(known, given, strict=False))
    for word, value in named.items():
        if word not in numbers or word in values:
            problem = f"{word} twice" if word in values else f"no number {word}"
            raise ValueError(f"the loss {name} has {problem}; {_usage(name)}")
        values[word] = value
    found = []
    for word, bounds in numbers.items():
        value = values.get(word, bounds.default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not bounds.low < value < bounds.high:
            between = f"between {bounds.low:g} and {bounds.high:g}" if math.isfinite(bounds.high) else "above 0"
            raise ValueError(f"{word} of the loss {name} must be a number {between}, is {value_text(value)}")
        found.append(float(value))
    return tuple(found)


def call_text(name: str, numbers: Sequence[float]) -> str:
    """The name of a loss with its numbers, as `call_of` reads it."""
    short = (f"{number:g}" if float(f"{number:g}") == number else repr(number) for number in numbers)
    return f"{name}({', '.join(short)})" if numbers else name


def _usage(name: str) -> str:
    numbers = LIBRARY[name].numbers
    if not numbers:
        return f"write {name!r}, without numbers"
    example = call_text(name, [each.default for each in numbers.values()])
    return f"write {example!r}, with {' and '.join(numbers)}"
