"""A formula of a Pareto front, with its measures: to predict with, to export, to copy to other processes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from numpy.typing import ArrayLike

from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import shortened
from shine.lang.forms.printing import definition_source
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse
from shine.lang.presentation import for_people
from shine.lang.wrapping import wrapped
from shine.search.evolution.complexity import tree_complexity
from shine.search.models.front_table import figures_text, loss_text, r2_text, screen_width
from shine.search.models.uncertain import UncertainModel

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation
    from shine.evaluate.inference.bands import Kind as Band
    from shine.evaluate.inference.inference import Basis
    from shine.evaluate.inference.many_rows import SumsOfForm
    from shine.evaluate.inference.uncertainty import Uncertainty

LONGEST_IN_REPR = 200
"""Most characters of a formula in the `repr` of a model, which is often part of another text."""

MANY_ROWS = 1_000_000
"""Rows above which compiling a formula with optimization pays off in prediction."""


@dataclass(frozen=True, eq=False, repr=False)
class Model(UncertainModel):
    """One formula of a Pareto front.

    Parameters
    ----------
    tree : Tree
        Its parameters are all features, in the order of the columns.
    loss : float
        The loss of the search, over all rows.
    r2 : float
        Coefficient of determination on the same rows, with the same weights; at most 1.
    weights : mapping of str to float
        Complexity of a primitive, a feature or a `constant`, by name; 1 if not listed.
    headings : mapping of str to str
        Original heading of each feature's column, by the feature's name in the formula; empty if it is not known.
    digits : int, optional
        Significant digits of constants that the data support; None if it is not known.
    preparation : Preparation, optional
        How columns of the user's table became numbers; None if they held numbers.
    objectives : tuple of float
        What the further objectives of the user's say of it, if there are any.
    noise : str
        Model of the noise by which the rows are weighted in `loss` and `r2` (see `shine.search.problem.noise`).
    basis : Basis, optional
        The rows that it was fitted to; pickles have at most some of them.
    known : Uncertainty, optional
        What was computed about its constants before it was copied.
    sums : SumsOfForm, optional
        Sums over all rows, if the basis has a sample of them.
    """

    tree: Tree
    loss: float
    r2: float
    weights: Mapping[str, float] = field(default_factory=dict)
    headings: Mapping[str, str] = field(default_factory=dict)
    digits: int | None = None
    objectives: tuple[float, ...] = ()
    noise: str = "absolute"
    basis: Basis | None = field(default=None, compare=False)
    known: Uncertainty | None = field(default=None, compare=False)
    preparation: Preparation | None = None
    sums: SumsOfForm | None = field(default=None, compare=False)

    @property
    def expression(self) -> str:
        """The formula as exact Python text: parsing it gives the same values to the last bit (see `formula`)."""
        return self.tree.readable

    def formula(self, precision: Precision = None) -> str:
        """The formula as text for people to read (see `rounded` for the precision)."""
        return self.rounded(precision).readable

    def rounded(self, precision: Precision = None) -> Tree:
        """The formula with constants of few digits, for people to read.

        Parameters
        ----------
        precision : int, "exact" or None
            So many significant digits; all digits; or those that the data support.

        Raises
        ------
        ValueError
            If the precision is none of these.
        """
        return for_people(self.tree, precision, self.digits)

    @property
    def shown(self) -> tuple[Tree, ...]:
        """The formula for people, and that of each further output."""
        return (self.rounded(),)

    @property
    def complexity(self) -> int:
        """Sum of the weights of all nodes."""
        return tree_complexity(self.tree, self.weights)

    @property
    def is_constant(self) -> bool:
        """Whether it is nothing but a number."""
        return self.tree.size == 1 and self.tree.tokens[-1][0] == "constant"

    @property
    def figures(self) -> str:
        """Loss, R2 and complexity, as a line."""
        return figures_text(self.loss, self.r2, self.complexity, self.noise)

    @property
    def named(self) -> Tree:
        """The formula with the functions that have names of their own."""
        return self.tree

    @property
    def counts(self) -> tuple[int, int]:
        """Nodes, and constants among them, as far as the search has chosen them."""
        return self.tree.size, sum(token[0] == "constant" for token in self.tree.tokens[1:])

    @cached_property
    def kernel(self) -> Kernel:
        """The formula compiled for float64; its arguments are the features."""
        return Kernel(self.tree)

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> Floats: ...

    @overload
    def predict(self, X: ArrayLike, return_std: bool | Band) -> Any: ...

    def predict(self, X: ArrayLike, return_std: bool | Band = False) -> Any:
        """Values of the formula.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            A data frame needs only the columns that the formula uses, in any order; they have the headings that they
            had in the search, or the names in the formula.
        return_std : bool, or {"mean", "prediction"}
            Whether to return standard deviations, too: of new readings, with their noise (True, or "prediction"), or
            only of the formula's value, whose constants are uncertain ("mean").

        Returns
        -------
        ndarray of shape (n_rows,), float64
            A pair of them with `return_std`.

        Raises
        ------
        DataError
            If X lacks a column, has the wrong number of columns, or a value that is not finite.

        Warns
        -----
        ExtrapolationWarning
            If a feature leaves the range of the rows that the model was fitted to, by more than a tenth of it, and the
            formula is not exact; once.
        """
        columns = self._columns(X)
        self._warn_outside(columns, stacklevel=2)
        if return_std is not False:
            return self._standard_deviations(X, return_std)
        # On few rows LLVM's passes take longer than they save; they do not change the values.
        kernel = self.kernel if len(X) > MANY_ROWS else self._quick_kernel  # type: ignore[arg-type]
        result: Floats = kernel(*columns)
        return result

    @cached_property
    def _quick_kernel(self) -> Kernel:
        return Kernel(self.tree, opt_level="O0")

    def export(self, to: str, name: str = "f", *, precision: Precision = None, **options: Any) -> str | bytes:
        """The formula in another form (see `shine.export`).

        Parameters
        ----------
        to : str
            One of `shine.export.EXPORTS`: "python", "latex", "c", "sql", ...
        name : str
            Name of the formula in that form.
        precision : int, "exact" or None
            Significant digits of constants, or all. None means the digits that the data support in forms for people
            (LaTeX, SymPy), and all digits in the others.
        **options
            Of the form: ``dialect="sqlite"`` for SQL, say.

        Raises
        ------
        ValueError
            If there is no such form, or it has no such option.
        ExportError
            If the formula cannot be written in this form, or a library that the form needs is missing.
        """
        from shine.formats.write import FOR_PEOPLE, export

        tree = self.rounded(precision) if to in FOR_PEOPLE else self._with_digits(precision)
        known = {"headings": self.headings, "preparation": self.preparation} | options
        return export(tree, to, name, **known)

    def _with_digits(self, precision: Precision) -> Tree:
        """The formula for code, with all digits by default."""
        return rounded_tree(self.tree, precision, named=False)

    def python(self, name: str = "f", *, precision: Precision = None) -> str:
        """Source of a Python function that only needs NumPy, with all digits of constants by default."""
        return str(self.export("python", name, precision=precision))

    def latex(self, precision: Precision = None) -> str:
        """The formula for LaTeX's math mode, with the headings of the columns (see `rounded` for the precision)."""
        from shine.formats.write.latex import latex
        from shine.formats.write.sources import with_preparation

        return latex(self.rounded(precision), headings=with_preparation(self.headings, self.preparation))

    def sympy(self, precision: Precision = None) -> Any:
        """The formula as a SymPy expression (see `rounded` for the precision).

        Raises
        ------
        MissingExtraError
            If SymPy is not installed.
        """
        from shine.formats.write.sympy import sympy_expression

        return sympy_expression(self.rounded(precision))

    def __str__(self) -> str:
        """The formula for people, and below it its figures; wrapped on a terminal."""
        width = screen_width()
        figures = wrapped(self.figures, width)
        return "\n".join([*wrapped(self.formula(), width, "    "), *figures])

    def __repr__(self) -> str:
        r2 = f", r2={r2_text(self.r2)}" if math.isfinite(self.r2) else ""
        formula = shortened(self.formula(), LONGEST_IN_REPR)
        return f"Model({formula!r}, loss={loss_text(self.loss)}{r2}, complexity={self.complexity})"

    def _repr_html_(self) -> str:
        """The formula, typeset, and its figures for notebooks."""
        from shine.search.models.notebook import formula_element, page_part

        return page_part([formula_element(tree, self.headings) for tree in self.shown], self.figures)

    def _repr_latex_(self) -> str:
        """The formula for notebooks that typeset LaTeX."""
        return f"$\\displaystyle {self.latex()}$"

    def __reduce__(self) -> tuple[Any, ...]:
        # As text: compiled code cannot be copied to another process, and reading text executes nothing.
        return _model_of, (str(self.tree), self.tree.parameters, _definitions(self.tree), self._measures())

    def _measures(self) -> dict[str, Any]:
        """Fields of a copy in another process besides the formula."""
        names = ("loss", "r2", "digits", "objectives", "noise", "preparation")
        own = {name: getattr(self, name) for name in names}
        return {**own, "weights": dict(self.weights), "headings": dict(self.headings), **self._lasting()}

    def __copy__(self) -> Self:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _definitions(tree: Tree) -> tuple[str, ...]:
    """Definitions of the user's functions that a formula calls, each after the functions that it calls."""
    found: dict[str, str] = {}

    def collect(at: Tree) -> None:
        for name in sorted(functions_of(at) - STANDARD.keys()):
            definition = at.functions[name].definition
            if name not in found and definition is not None:
                collect(definition)
                found[name] = definition_source(name, definition.parameters, definition.assignments, definition.result)

    collect(tree)
    return tuple(found.values())


def _model_of(
    expression: str, parameters: tuple[str, ...], definitions: tuple[str, ...], measures: dict[str, Any]
) -> Model:
    """Read a model back from text (see `Model.__reduce__`)."""
    table: dict[str, Primitive] = dict(STANDARD)
    for text in definitions:
        definition = parse(text, primitives=table)
        table[definition.name] = Primitive(definition.name, len(definition.parameters), definition)
    return Model(parse(expression, parameters, table), **measures)
