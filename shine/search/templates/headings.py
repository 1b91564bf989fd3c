"""Headings of columns in the text of a template: they become the names that formulas have for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.names import shown


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
    # The longest first: a heading may be a part of another one.
    for heading in sorted(names, key=len, reverse=True):
        if heading.isidentifier():
            continue
        pattern = _pattern(heading)
        if re.search(pattern, source.replace(f"`{heading}`", "")) and _means_others(heading, known):
            raise UnsupportedSyntaxError(
                f"template: {shown(heading)} is the heading of a column, and also a formula of others; write "
                f"{names[heading]} for the column, or change the spaces for the formula"
            )
        source = re.sub(f"`{re.escape(heading)}`|{pattern}", names[heading], source)
    return source


def _pattern(heading: str) -> str:
    """The heading where it is no part of another word."""
    before = r"(?<!\w)" if re.match(r"\w", heading) else ""
    after = r"(?!\w)" if re.search(r"\w$", heading) else ""
    return before + re.escape(heading) + after


def _means_others(heading: str, known: set[str]) -> bool:
    """Whether a heading reads as a formula of other columns."""
    try:
        nodes = list(ast.walk(ast.parse(heading, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return bool(names - called) and names - called <= known
