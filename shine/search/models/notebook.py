"""Formulas and fronts in notebooks: as HTML with MathML, which needs no script, and as LaTeX.

Colours are translucent or those of the page, so that they suit a dark page, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shine.formats.page.markup import Content, Element, element, render
from shine.formats.page.mathml import formula_lines, math
from shine.formats.page.mathml.operators import name_element, symbol
from shine.lang.forms.rounding import ALL_DIGITS
from shine.lang.forms.tree import Tree
from shine.search.models.front_table import Row, loss_name, loss_text, noise_text

IGNORED = "mathjax_ignore tex2jax_ignore"
"""Classes of text in which notebooks look for no formulas: a heading may hold two dollar signs."""

_CHOSEN = "font-weight: bold; background: rgba(90, 140, 255, 0.15)"
_CODE = "white-space: pre-wrap; overflow-wrap: anywhere; text-align: left"
_LEFT = "text-align: left"
_ROW = "display: flex; flex-wrap: wrap; align-items: baseline; break-inside: avoid"
_FIGURE, _FORMULA = "flex: 0 0 6em; box-sizing: border-box", f"flex: 1 1 16em; box-sizing: border-box; {_LEFT}"
"""Where a formula has no room beside its figures, it stands below them."""


def page_part(*content: Content) -> str:
    """Content as HTML for a cell of a notebook."""
    return render(element("div", content, class_=IGNORED))


def formula_element(tree: Tree, headings: Mapping[str, str], left: str = "") -> Element:
    """A formula for people, typeset, or as text if it is too large; `left` is what it is equal to."""
    head = math(name_element(left), symbol("=")) if left else None
    lines = formula_lines(tree, headings, ALL_DIGITS, head, 24.0)  # ems beside the figures
    if not lines:
        return element("code", f"{left} = " * bool(left), tree.readable, style=_CODE)
    return element("div", lines, style="text-align: left; padding: 0.25em 0")


def front_element(
    rows: Sequence[Row], formulas: Sequence[Content], reason: str = "", noise: str = "absolute"
) -> Content:
    """A front as a table, the recommended formula marked, with the reason for it.

    Parameters
    ----------
    rows : sequence of mapping
    formulas : sequence of Element
        The formulas, typeset; of each several if it has several outputs.
    reason : str
    noise : str
        Model of the noise by which the losses are weighted.
    """
    headings = [element("th", name, style=_FIGURE) for name in ("", "complexity", loss_name(noise), "score")]
    head = element("thead", element("tr", headings, element("th", "equation", style=_FORMULA), style=_ROW))
    lines = []
    for index, (row, shown) in enumerate(zip(rows, formulas, strict=True)):
        figures = (str(row["complexity"]), loss_text(row["loss"]), f"{row['score']:.3g}")
        cells = [element("td", text, style=_FIGURE) for text in (f"{'▶ ' if row['best'] else ''}{index}", *figures)]
        formula = element("td", shown, style=_FORMULA, title=row["expression"])
        lines.append(element("tr", cells, formula, style=f"{_ROW}; {_CHOSEN}" if row["best"] else _ROW))
    told = [element("p", text) for text in (noise_text(noise), reason and f"▶ {reason}") if text]
    return element("table", head, element("tbody", lines)), told


def front_latex(rows: Sequence[Row], formulas: Sequence[str], noise: str = "absolute") -> str:
    """A front as an array in LaTeX, the recommended formula marked.

    Parameters
    ----------
    rows : sequence of mapping
    formulas : sequence of str
        Each formula for mathematics mode.
    noise : str
        Model of the noise by which the losses are weighted.
    """
    lines = [rf"& \text{{complexity}} & \text{{{loss_name(noise)}}} & \text{{equation}} \\ \hline"]
    for index, (row, formula) in enumerate(zip(rows, formulas, strict=True)):
        mark = r"\blacktriangleright\ " if row["best"] else ""
        lines.append(rf"{mark}{index} & {row['complexity']} & {latex_number(row['loss'])} & {formula} \\")
    return "$$\\begin{array}{rrrl}\n" + "\n".join(lines) + "\n\\end{array}$$"


def latex_number(value: Any) -> str:
    r"""A figure for LaTeX: ``1.2 \cdot 10^{-5}``."""
    mantissa, _, exponent = loss_text(value).partition("e")
    if mantissa in ("inf", "nan"):
        return r"\infty" if mantissa == "inf" else r"\text{NaN}"
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_text(text: str) -> str:
    r"""Any text for LaTeX's ``\text{...}``."""
    return "".join(_LATEX_CHARACTERS.get(character, character) for character in text)


_LATEX_CHARACTERS = {
    **{character: f"\\{character}" for character in "{}_#&$%"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "\n": " ",
}
