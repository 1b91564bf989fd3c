"""A small document tree for HTML, SVG and MathML that escapes all text.

xml.etree closes every SVG shape with its own tag as HTML, and breaks scripts as XML; others would be dependencies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Union

Content = Union["Element", str, None, Sequence["Content"]]
"""Content of an element: elements, text, None, and sequences of these."""

_VOID = frozenset({"meta", "link", "br", "hr", "wbr"})
"""Elements of HTML without an end tag."""

_SHAPES = frozenset({"circle", "ellipse", "line", "path", "polygon", "polyline", "rect", "mspace", "use"})
"""Elements of SVG and MathML that are written as one tag if they are empty."""


@dataclass(frozen=True)
class Element:
    """An element with its attributes and content; `element` makes it."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    content: tuple[Content, ...]


@dataclass(frozen=True)
class Verbatim(Element):
    """A style sheet or a script, whose text HTML does not decode."""


def element(name: str, *content: Content, **attributes: object) -> Element:
    """An element; ``class_`` becomes ``class``, and ``stroke_width`` becomes ``stroke-width``.

    Floats are rounded to hundredths; an attribute that is None is left out.
    """
    written = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()]
    return Element(name, tuple((key, _value(value)) for key, value in written if value is not None), content)


def verbatim(name: str, text: str) -> Verbatim:
    """A style sheet or script that belongs to Shine; a `ValueError` if the text would end the element."""
    if f"</{name}" in text.lower():
        raise ValueError(f"the text of a <{name}> cannot contain its end")
    return Verbatim(name, (), (text,))


_BREAKS = re.compile(r"(?<=[/(,_])|(?<=\*)(?!\*)|(?<=\.)(?=[^\W\d])")


def breakable(text: str) -> list[Content]:
    """A text whose lines may also end after operators of formulas and between the words of names and paths."""
    return [part for piece in _BREAKS.split(text) for part in (element("wbr"), piece)][1:]


def coordinate(value: float) -> str:
    """A length in a drawing, rounded to hundredths."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _value(value: object) -> str:
    return coordinate(value) if isinstance(value, float) else str(value)


def depth(root: Content) -> int:
    """Number of levels of nested elements."""
    deepest, stack = 0, [(root, 0)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        if isinstance(item, Element):
            stack += [(part, level + 1) for part in item.content]
        elif item is not None and not isinstance(item, str):
            stack += [(part, level) for part in item]
    return deepest


def render(root: Content) -> str:
    """The text of a document tree."""
    if isinstance(root, str):
        return escape(root, quote=False)
    if not isinstance(root, Element):
        return "".join(map(render, root or ()))
    begin = "".join([root.name, *(f' {key}="{escape(value)}"' for key, value in root.attributes)])
    if not root.content and root.name in _SHAPES:
        return f"<{begin}/>"
    inner = str(root.content[0]) if isinstance(root, Verbatim) else render(root.content)
    return f"<{begin}>" if root.name in _VOID else f"<{begin}>{inner}</{root.name}>"
