"""What a search found: formulas with their losses, and the one to recommend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, overload

from numpy.typing import ArrayLike

from shine.data.dataset import numbers
from shine.errors import DataError, ExportError
from shine.gp.complexity import tree_complexity
from shine.kernels.kernel import Kernel
from shine.lang.lazy import cached_property
from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.printing import definition_source
from shine.lang.tape import functions_of
from shine.lang.tree import Primitive, Tree
from shine.typing import Floats

MANY_ROWS = 1_000_000
"""Rows above which a formula is compiled with optimization to predict them."""

WIDEST_EQUATION = 100
"""Letters of a formula that a table shows; more are cut off."""


@dataclass(frozen=True, eq=False)
class Model:
    """One formula of a Pareto front.

    Parameters
    ----------
    tree : Tree
        Its parameters are all features, in the order of the columns.
    loss : float
        As the search measured it, over all rows.
    r2 : float
        Coefficient of determination on the same rows; at most 1.
    weights : mapping of str to int
        What a primitive, a feature or a `constant` counts in the complexity, by name; 1 if not listed.
    """

    tree: Tree
    loss: float
    r2: float
    weights: Mapping[str, int] = field(default_factory=dict)

    @property
    def expression(self) -> str:
        """The formula as Python text."""
        return str(self.tree)

    @property
    def complexity(self) -> int:
        """Number of nodes, each counted as often as its weight says."""
        return tree_complexity(self.tree, self.weights)

    @cached_property
    def kernel(self) -> Kernel:
        """The formula compiled for float64; its arguments are the features."""
        return Kernel(self.tree)

    def predict(self, X: ArrayLike) -> Floats:
        """Values of the formula.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        DataError
            If X has another number of features, or a value that is not finite.
        """
        matrix = numbers(X, "X", 2)
        if matrix.shape[1] != len(self.tree.parameters):
            names = self.tree.parameters
            raise DataError(f"X has {matrix.shape[1]} columns; the formula needs {len(names)}: {', '.join(names)}")
        # LLVM's passes take longer than they save on few rows; what they make has the same values.
        kernel = self.kernel if len(matrix) > MANY_ROWS else self._quick_kernel
        result: Floats = kernel(*matrix.T)
        return result

    @cached_property
    def _quick_kernel(self) -> Kernel:
        return Kernel(self.tree, opt_level="O0")

    def export(self, to: str, name: str = "f") -> str | bytes:
        """The formula in another form (see `shine.export`).

        Parameters
        ----------
        to : str
            One of `shine.export.EXPORTS`: "python", "latex", "c", "sql", ...
        name : str
            What the formula is called there.

        Raises
        ------
        ValueError
            If there is no such form.
        ExportError
            If the formula cannot be written in it, or a library that it takes is missing.
        """
        from shine.export import export

        return export(self.tree, to, name)

    def python(self, name: str = "f") -> str:
        """Source of a Python function that needs NumPy only."""
        from shine.export.python import python_source as function_source

        return function_source(self.tree, name)

    def latex(self) -> str:
        """The formula in LaTeX's mathematics mode."""
        from shine.export.latex import latex

        return latex(self.tree)

    def sympy(self) -> Any:
        """The formula as a SymPy expression.

        Raises
        ------
        ExportError
            If SymPy is not installed.
        """
        from shine.export.sympy import sympy_expression

        return sympy_expression(self.tree)

    def __reduce__(self) -> tuple[Any, ...]:
        # As text: compiled code cannot be copied to another process, and a reader of text runs none.
        own = _definitions(self.tree)
        return _model_of, (
            self.expression, self.tree.parameters, own, self.loss, self.r2, dict(self.weights),
        )  # fmt: skip


def _definitions(tree: Tree) -> tuple[str, ...]:
    """Text of the functions that a formula calls and that are not Shine's own, each after those it calls itself."""
    found: dict[str, str] = {}

    def look(at: Tree) -> None:
        for name in sorted(functions_of(at) - STANDARD.keys()):
            definition = at.functions[name].definition
            if name not in found and definition is not None:
                look(definition)
                found[name] = definition_source(name, definition.parameters, definition.assignments, definition.result)

    look(tree)
    return tuple(found.values())


def _model_of(
    expression: str,
    parameters: tuple[str, ...],
    definitions: tuple[str, ...],
    loss: float,
    r2: float,
    weights: dict[str, int],
) -> Model:
    """The model that was written as text."""
    table: dict[str, Primitive] = dict(STANDARD)
    for text in definitions:
        definition = parse(text, primitives=table)
        table[definition.name] = Primitive(definition.name, len(definition.parameters), definition)
    return Model(parse(expression, parameters, table), loss, r2, weights)


@dataclass(frozen=True, eq=False, repr=False)
class Front(Sequence[Model]):
    """The Pareto front of a search: rising complexity, falling loss.

    Parameters
    ----------
    models : tuple of Model
    best_index : int
        Position of the recommended formula.
    """

    models: tuple[Model, ...]
    best_index: int

    @overload
    def __getitem__(self, index: int) -> Model: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Model, ...]: ...

    def __getitem__(self, index: int | slice) -> Model | tuple[Model, ...]:
        return self.models[index]

    def __len__(self) -> int:
        return len(self.models)

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.models[self.best_index]

    @property
    def scores(self) -> tuple[float, ...]:
        """By how much the logarithm of the loss falls, a unit of complexity, from each formula's predecessor.

        0 for the first; inf where the loss falls to 0. As PySR has it.
        """
        scores = [0.0]
        for before, after in zip(self.models, self.models[1:], strict=False):
            if before.loss > 0:
                fall = math.inf if after.loss <= 0 else math.log(before.loss) - math.log(after.loss)
                scores.append(fall / (after.complexity - before.complexity))
            else:
                scores.append(0.0)
        return tuple(scores[: len(self.models)])

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, score, r2, expression, best."""
        for position, (model, score) in enumerate(zip(self.models, self.scores, strict=True)):
            yield {
                "complexity": model.complexity,
                "loss": model.loss,
                "score": score,
                "r2": model.r2,
                "expression": model.expression,
                "best": position == self.best_index,
            }

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns complexity, loss, score, equation; the index is that of the front.

        Raises
        ------
        ExportError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ExportError("a DataFrame needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.columns())

    def columns(self) -> dict[str, list[Any]]:
        """The front by columns: complexity, loss, score, equation."""
        return {
            "complexity": [model.complexity for model in self.models],
            "loss": [model.loss for model in self.models],
            "score": list(self.scores),
            "equation": [model.expression for model in self.models],
        }

    def plot(self, ax: Any = None) -> Any:
        """Loss over complexity, drawn by matplotlib (see `shine.report.plots.pareto`).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from shine.report.plots import pareto

        return pareto(self, ax)

    def __repr__(self) -> str:
        """A table, the recommended formula marked."""
        lines = [f"{'':3} {'':>3} {'complexity':>10}  {'loss':<10}  {'score':<9}  equation"]
        for position, row in enumerate(self.rows()):
            mark = ">>>" if row["best"] else ""
            numbers_ = f"{row['complexity']:>10}  {row['loss']:<10.4g}  {row['score']:<9.3g}"
            lines.append(f"{mark:3} {position:>3} {numbers_}  {_shortened(row['expression'])}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table for notebooks, the recommended formula marked."""
        header = "".join(f"<th>{name}</th>" for name in ("", "complexity", "loss", "score", "equation"))
        body = []
        for position, row in enumerate(self.rows()):
            style = ' style="font-weight: bold; background: rgba(90, 140, 255, 0.15)"' if row["best"] else ""
            cells = (
                f"<td>{'&#9654; ' if row['best'] else ''}{position}</td>",
                f"<td>{row['complexity']}</td><td>{row['loss']:.4g}</td><td>{row['score']:.3g}</td>",
                f'<td style="text-align: left"><code>{escape(_shortened(row["expression"]))}</code></td>',
            )
            body.append(f"<tr{style}>{''.join(cells)}</tr>")
        return f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST_EQUATION else f"{line[: WIDEST_EQUATION - 3]}..."


@dataclass(frozen=True, eq=False)
class Result:
    """What a search found.

    Parameters
    ----------
    front : Front, or sequence of Model
        Pareto front: rising complexity, falling loss. Any sequence becomes a `Front`.
    best_index : int
        Position in the front of the recommended formula (see `choose`).
    generations, evaluations : int
        Generations bred, and individuals evaluated.
    seconds : float
        Duration of the search.
    seed : int
    stopped_by : {"loss", "generations", "seconds", "interrupted", "callback"}
    """

    front: Front
    best_index: int
    generations: int
    evaluations: int
    seconds: float
    seed: int
    stopped_by: str

    def __post_init__(self) -> None:
        # What searches hand over is plain; how a front looks is for the front to say.
        object.__setattr__(self, "front", Front(tuple(self.front), self.best_index))

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.front[self.best_index]

    def predict(self, X: ArrayLike) -> Floats:
        """Values of the recommended formula (see `Model.predict`)."""
        return self.best.predict(X)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, r2, expression, best."""
        for row in self.front.rows():
            yield {name: value for name, value in row.items() if name != "score"}


def choose(front: Sequence[Model], enough: float, rows: float, power: float) -> int:
    """Position of the formula to recommend.

    The simplest whose loss is at most `enough`, if there is one. Otherwise the one of least description length: what
    it costs to write down the residuals and the formula, by the approximation of Schwarz (1978) with each node
    counted as a parameter. A formula of more nodes than there are rows is not considered: one of them fits anything.

    Parameters
    ----------
    front : sequence of Model
        Rising complexity, falling loss; not empty.
    enough : float
        Loss below which two formulas are equally right.
    rows : float
        Number of rows the losses were measured on, or what they count as if they have weights.
    power : float
        What the logarithm of a loss counts: half if it is in squared units.
    """
    considered = [front[0], *(model for model in front[1:] if model.tree.size <= rows)]
    for position, model in enumerate(considered):
        if model.loss <= enough:
            return position
    lengths = [power * rows * math.log(m.loss) + 0.5 * m.tree.size * math.log(rows) for m in considered]
    return lengths.index(min(lengths))
