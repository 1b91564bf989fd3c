"""Templates from text and from Python functions, with the headings of columns in them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import shown, value_text
from shine.lang.python.source import in_file_of
from shine.lang.vocabulary import KINDS, PrimitiveSource, primitive_table
from shine.search.templates.source import SourceReader
from shine.search.templates.template import Template, read_parameters, read_unknowns

TemplateSource = str | Callable[..., object] | Template | Mapping[str, Any]
"""The forms in which a template is given."""


@overload
def template(
    source: TemplateSource,
    *,
    unknown: Mapping[str, Any] | Sequence[str] | None = None,
    parameters: Mapping[str, Any] | Sequence[str] | None = None,
    groups: str | None = None,
    shrinkage: bool = False,
    functions: Sequence[PrimitiveSource] = (),
) -> Template: ...


@overload
def template(
    source: None = None,
    *,
    unknown: Mapping[str, Any] | Sequence[str] | None = None,
    parameters: Mapping[str, Any] | Sequence[str] | None = None,
    groups: str | None = None,
    shrinkage: bool = False,
    functions: Sequence[PrimitiveSource] = (),
) -> Callable[[Callable[..., object]], Template]: ...


def template(
    source: TemplateSource | None = None,
    *,
    unknown: Mapping[str, Any] | Sequence[str] | None = None,
    parameters: Mapping[str, Any] | Sequence[str] | None = None,
    groups: str | None = None,
    shrinkage: bool = False,
    functions: Sequence[PrimitiveSource] = (),
) -> Any:
    """A law of which a part is known: a search finds the unknown functions, if there are any, and fits the parameters.

    Parameters
    ----------
    source : str or function
        An expression, or several with commas between them, one for each output: ``"f(a, b)*exp(-k[group]*t) + g(t)"``;
        or a function, as text or in Python, whose arguments are columns. Calls of functions that Shine does not know
        are the unknown functions. Names that are neither columns nor functions are parameters. ``k[group]`` has a value
        for each group of the column `group`; ``x[0]`` is the column or parameter ``x0``. ``D(f, 0)(a, b)`` is the
        derivative of f with respect to its first argument. Sums and loops have a fixed length:
        ``sum(f(x[i]) for i in range(3))``, ``sum(f(x) for x in [a, b])``. Without a source, this is a decorator.
    unknown : mapping or sequence of str, optional
        The unknown functions by name: names of their arguments, in a list, or a mapping with ``arguments``,
        ``primitives``, ``max_size``, ``max_depth`` and ``constraints``. By default they are found in the source.
    parameters : mapping or sequence of str, optional
        What is known of parameters, by name: a fixed value; bounds ``(low, high)``, None where there is none; or a
        mapping with ``bounds``, ``integer``, ``value`` and ``start``.
    groups : str, optional
        The column of groups; by default the name that parameters have as subscript.
    shrinkage : bool
        Whether the values of a parameter by group are drawn towards their mean, as draws from a normal distribution
        that is estimated too: the more, the less the rows of a group determine its own value.
    functions : sequence of function or str, optional
        Known functions that the source calls, besides Shine's: Python functions, or their text.

    Returns
    -------
    Template
        For ``shine.evolve(X, y, template=...)``; without a source, a decorator that returns it.

    Raises
    ------
    UnsupportedSyntaxError
        If the source is not part of the language of templates.
    TypeError, ValueError
        If an option is invalid.

    Examples
    --------
    >>> law = template("f(a, b)*exp(-k[group]*t) + g(t)", unknown={"f": ["a", "b"], "g": ["t"]})
    >>> [parameter.name for parameter in law.parameters], law.groups
    (['k'], 'group')
    >>> @template(parameters={"k": (0, None)})
    ... def decay(t):
    ...     return f(t)*exp(-k*t)
    >>> decay.unknowns[0].arguments
    ('t',)
    """
    if source is None:
        return lambda function: template(
            function,
            unknown=unknown,
            parameters=parameters,
            groups=groups,
            shrinkage=shrinkage,
            functions=functions,
        )
    options = {
        "unknown": unknown,
        "parameters": parameters,
        "groups": groups,
        "shrinkage": shrinkage,
        "functions": functions,
    }
    given = [name for name, each in options.items() if each]
    if isinstance(source, Template):
        if given:
            raise TypeError(f"the template is complete; {given[0]} belongs to the call of shine.template that makes it")
        return source
    if isinstance(source, Mapping):
        return _of_mapping(source, given)
    if not isinstance(source, str) and not inspect.isfunction(source):
        raise TypeError(f"a template is a text or a Python function, not {type(source).__name__}")
    try:
        with in_file_of(source, f"template{'' if isinstance(source, str) else f' {source.__name__}'}: "):
            known, names = primitive_table(functions)
            if len(set(names)) < len(names):
                raise ValueError("template: functions: two have one name; give one of them another name")
            for own, _, number in (name.rpartition("_") for name in names if name not in STANDARD):
                if own in STANDARD.keys() | KINDS and number.isdecimal():
                    raise ValueError(
                        f"template: functions: {own!r} is one of Shine's primitives; give yours another name"
                    )
            found = SourceReader(source, read_unknowns(unknown), read_parameters(parameters), groups, known).template
    except RecursionError:
        raise UnsupportedSyntaxError("template: it is nested too deeply") from None
    if not isinstance(shrinkage, bool):
        raise TypeError(f"template: shrinkage is true or false, not {value_text(shrinkage)}")
    if shrinkage and not any(each.by_group for each in found.parameters):
        raise ValueError("template: shrinkage is for parameters by group, such as k[group], and there is none")
    return replace(found, shrinkage=shrinkage)


_KEYS = ("formula", "unknown", "parameters", "groups", "shrinkage", "functions")


def _of_mapping(source: Mapping[str, Any], given: Sequence[str]) -> Template:
    """A template with its options in one mapping, as in YAML."""
    if given:
        raise TypeError(f"the template is a mapping; put {given[0]} into it")
    wrong = [key for key in source if key not in _KEYS]
    if wrong:
        raise ValueError(f"template has the key {value_text(wrong[0])}; allowed are {', '.join(_KEYS)}")
    formula = source.get("formula")
    if isinstance(formula, list | tuple) and formula and all(isinstance(each, str) for each in formula):
        formula = ", ".join(f"({each})" for each in formula)
    if not isinstance(formula, str):
        raise ValueError("template has no formula; write one such as formula: f(t)*exp(-k*t)")
    options = {key: source[key] for key in _KEYS[1:] if source.get(key) is not None}
    return template(formula, **options)


def with_names(source: Any, headings: Mapping[str, str]) -> Any:
    """A template as a user gives it, with names in place of headings that are no identifiers: ``f(stress (MPa), t)``.

    Parameters
    ----------
    source : str, mapping or any other form of a template
        Only texts have headings. Backticks around a heading are allowed.
    headings : mapping of str to str
        Heading of each column, by its name in formulas.

    Raises
    ------
    UnsupportedSyntaxError
        If a heading also means a formula of other columns.
    """
    if isinstance(source, Mapping):
        formula, groups = source.get("formula"), source.get("groups")
        named = {"formula": with_names(formula, headings)} if formula is not None else {}
        names = {heading: name for name, heading in headings.items()}
        return {**source, **named, **({"groups": names[groups]} if groups in names else {})}
    if isinstance(source, list | tuple):
        return [with_names(each, headings) for each in source]
    if not isinstance(source, str):
        return source
    known = {*headings, *headings.values()}
    names = {heading: name for name, heading in headings.items() if heading != name and re.search(r"[^\W\d]", heading)}
    # The longest first: a heading may be a part of another one. Functions and keywords need backticks to be headings.
    for heading in sorted(names, key=len, reverse=True):
        whole = rf"(?:\b|(?=\W)){re.escape(heading)}(?:\b|(?<=\W))"
        pattern = "(?!)" if heading.isidentifier() else whole
        if re.search(pattern, source.replace(f"`{heading}`", "")) and _means_others(heading, known):
            raise UnsupportedSyntaxError(
                f"template: {shown(heading)} is the heading of a column, and also a formula of others; write "
                f"{names[heading]} for the column, or change the spaces for the formula"
            )
        source = re.sub(f"`{re.escape(heading)}`|{pattern}", names[heading], source)
    return source


def _means_others(heading: str, known: set[str]) -> bool:
    """Whether a heading reads as a formula of other columns."""
    try:
        nodes = list(ast.walk(ast.parse(heading, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return bool(names - called) and names - called <= known
