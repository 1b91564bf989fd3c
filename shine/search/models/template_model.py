"""A formula of a template, with its measures: the unknown functions, the parameters, and what they make together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError, ExportError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.evaluate.inference.constants import NOTHING_HELD, Form, Held
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.forms.names import shortened
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree
from shine.lang.presentation import for_people
from shine.lang.wrapping import wrapped
from shine.search.evolution.complexity import trees_complexity
from shine.search.models.front_table import screen_width
from shine.search.models.model import LONGEST_IN_REPR, Model
from shine.search.templates.grouping import grouped_preparation, with_known_groups
from shine.search.templates.law import Law

if TYPE_CHECKING:
    pass

MOST_GROUPS_SHOWN = 8
"""Most groups whose constants are listed where a formula is printed."""


@dataclass(frozen=True, eq=False, repr=False)
class FoundFunction(Model):
    """An unknown function as it was found: its features are its arguments; loss and R2 are those of the whole law."""

    def __str__(self) -> str:
        """The formula for people."""
        return self.formula()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shortened(self.formula(), LONGEST_IN_REPR)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        build, values = super().__reduce__()
        return _found_function, (build(*values),)


def _found_function(model: Model) -> FoundFunction:
    """Read a function back (see `FoundFunction.__reduce__`)."""
    return FoundFunction(model.tree, model.loss, model.r2, model.weights, digits=model.digits, noise=model.noise)


@dataclass(frozen=True, eq=False, repr=False)
class TemplateModel(Model):
    """A formula of a template (see `shine.search.models.model.Model`).

    Its complexity is that of the unknown functions.

    Parameters
    ----------
    law : Law
    output : int, optional
        The output that this is the formula of; None if it is the formula of all of several outputs.
    """

    law: Law = field(kw_only=True)
    output: int | None = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        # Columns of arrays and data frames hold numbers, except groups with texts as names.
        if self.preparation is None and self.law.groups is not None and self.law.groups.labels is not None:
            made = grouped_preparation(self.tree.parameters, self.headings, self.law.groups)
            object.__setattr__(self, "preparation", made)

    @property
    def functions(self) -> dict[str, FoundFunction]:
        """The formula of each unknown function by name; its features are the arguments of the function."""
        return {name: self._function(tree) for name, tree in self.law.functions.items()}

    def _function(self, tree: Tree) -> FoundFunction:
        return FoundFunction(tree, self.loss, self.r2, self.weights, digits=self.digits, noise=self.noise)

    @property
    def constants(self) -> dict[str, float | Floats]:
        """The value of each parameter by name; of a parameter by group an array, in the order of `groups`."""
        return {name: value if isinstance(value, float) else value.copy() for name, value in self.law.constants.items()}

    @property
    def groups(self) -> tuple[str | float, ...]:
        """The labels of the groups, in the order of the constants by group; empty without groups."""
        return () if self.law.groups is None else self.law.groups.names

    @property
    def categories(self) -> tuple[str, ...]:
        """The column of groups, if there is one."""
        return () if self.law.groups is None else (self.law.groups.column,)

    @property
    def outputs(self) -> tuple[TemplateModel, ...]:
        """The formula of each output of a template."""
        return tuple(replace(self, tree=self.law.composed(number), output=number) for number in self._numbers)

    @property
    def complexity(self) -> int:
        """Sum of the weights of all nodes of the unknown functions."""
        return trees_complexity(self.law.searched, self.weights)

    @property
    def counts(self) -> tuple[int, int]:
        """Nodes of the unknown functions, and constants that were fitted."""
        return self.law.complexity, self.law.n_constants

    @property
    def expression(self) -> str:
        """The composed formula as exact Python text; of several outputs, one formula a line."""
        return "\n".join(self.law.composed(output).readable for output in self._numbers)

    @property
    def _numbers(self) -> range | tuple[int, ...]:
        return range(self.law.n_outputs) if self.output is None else (self.output,)

    def formula(self, precision: Precision = None) -> str:
        """The composed formula for people, with ``k[group]`` for a constant by group (see `rounded`)."""
        of_tree = partial(for_people, precision=precision, supported=self.digits)
        return ", ".join(self.law.shown(output, of_tree) for output in self._numbers)

    @property
    def named(self) -> Tree:
        """The formula of the output, which calls the unknown functions by their names."""
        return self.law.named(self._only())

    def rounded(self, precision: Precision = None) -> Tree:
        """The formula with constants of few digits, and with the unknown functions by name."""
        of_tree = partial(for_people, precision=precision, supported=self.digits)
        return self.law.named(self._only(), of_tree, readable=True)

    @property
    def shown(self) -> tuple[Tree, ...]:
        """The formula of each output, for people."""
        return tuple(model.rounded() for model in self.outputs)

    def latex(self, precision: Precision = None) -> str:
        """The formula for LaTeX's math mode (see `Model.latex`); those of several outputs beside one another."""
        if self.output is None:
            return r",\quad ".join(model.latex(precision) for model in self.outputs)
        return super().latex(precision)

    def _only(self) -> int:
        """The output that this is the formula of."""
        if self.output is None:
            raise ExportError(
                f"the template has {self.law.n_outputs} outputs; choose one, outputs[0] to "
                f"outputs[{self.law.n_outputs - 1}]"
            )
        return self.output

    def predict(self, X: ArrayLike, return_std: Any = False) -> Any:
        """Values of the formula (see `Model.predict`); of several outputs, shape (n_rows, n_outputs).

        Raises
        ------
        DataError
            If X has groups that were not in the data of the search, besides the errors of `Model.predict`.
        """
        if self.output is None:
            parts = [model.predict(X, return_std) for model in self.outputs]
            if return_std is False:
                return np.column_stack(parts)
            return tuple(np.column_stack(each) for each in zip(*parts, strict=True))
        return super().predict(self.with_group_numbers(X), return_std)

    def with_group_numbers(self, X: Any) -> Any:
        """The table with numbers for groups that have texts as names; see `predict` for the error."""
        if self.law.groups is None:
            return X
        return with_known_groups(X, self.tree.parameters, self.headings, self.law.groups)

    def _form(self, held: Held = NOTHING_HELD) -> Form:
        """The formula with names in place of the functions' constants, and of the parameters."""
        from shine.search.models.template_refit import form_of_law

        return form_of_law(self.law, held, self._single_output())

    def with_data(self, X: ArrayLike, y: ArrayLike, *others: Any, **options: Any) -> Self:
        """The model with rows that its intervals refer to (see `Model.with_data`); it is that of one output."""
        self._single_output()
        return super().with_data(X, y, *others, **options)

    def _known(self, *which: Any, **options: Any) -> Uncertainty:
        self._single_output()
        return super()._known(*which, **options)

    def _single_output(self) -> int:
        """The output that intervals are those of."""
        if self.output is None:
            raise DataError(
                f"the template has {self.law.n_outputs} outputs, and intervals are those of one: "
                "model.outputs[0].with_data(X, y[:, 0]).conf_int()"
            )
        return self.output

    def _columns(self, X: ArrayLike) -> list[Floats]:
        return super()._columns(self.with_group_numbers(X))

    def refit_groups(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        loss: str = "mse",
        shrinkage: bool | None = None,
    ) -> TemplateModel:
        """The same law with constants for the groups in new rows; the unknown functions and all else stay as they are.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            As in the search. Groups that the model knows are fitted again; those without new rows keep their constants.
        y : array-like of shape (n_rows,), or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), optional
        loss : str
            What the fit minimizes.
        shrinkage : bool, optional
            Whether constants are drawn to those of the known groups; by default as in the template.

        Returns
        -------
        TemplateModel
            Its loss and R2 are still those of the rows of the search.

        Raises
        ------
        DataError
            If the template has no constants by group, or the data are invalid.

        Examples
        --------
        >>> model = model.refit_groups(new_X, new_y)    # doctest: +SKIP
        """
        from shine.search.models.template_refit import with_refitted_groups

        shrunk = self.law.template.shrinkage if shrinkage is None else shrinkage
        law = with_refitted_groups(self.law, self.headings, X, y, sample_weight, loss, shrunk)
        return replace(self, tree=law.composed(self.output or 0), law=law, basis=None, known=None)

    @cached_property
    def kernel(self) -> Kernel:
        """The formula compiled for float64; its arguments are the features."""
        self._only()
        return Kernel(self.tree)

    def _with_digits(self, precision: Precision) -> Tree:
        """The formula for code, which calls the unknown functions by their names."""
        return self.law.named(self._only(), partial(rounded_tree, precision=precision, named=False))

    def __str__(self) -> str:
        """The formula for people, its functions and constants, and its figures; wrapped on a terminal."""
        width = screen_width()
        lines = [self.formula(), *self._parts()]
        shown = [part for line in lines for part in wrapped(line, width, "    ")]
        return "\n".join([*shown, *wrapped(self.figures, width)])

    def _parts(self) -> list[str]:
        """The functions and the constants as lines of text."""
        lines = [
            f"  {name}({', '.join(each.tree.parameters)}) = {each.formula()}" for name, each in self.functions.items()
        ]
        for name, value in self.law.constants.items():
            if isinstance(value, float):
                lines.append(f"  {name} = {value:.6g}")
                continue
            assert self.law.groups is not None
            pairs = zip(self.law.groups.names, value.tolist(), strict=True)
            texts = [f"{_label(label)}: {number:.5g}" for label, number in pairs]
            more = len(texts) - MOST_GROUPS_SHOWN
            listed = ", ".join(texts[:MOST_GROUPS_SHOWN]) + (f", and {more} more" if more > 0 else "")
            lines.append(f"  {name}[{self.law.groups.column}] = {listed}")
        return lines

    def __reduce__(self) -> tuple[Any, ...]:
        return _template_model_of, (self.law, self.output, self._measures())


def _label(label: str | float) -> str:
    return f"{label:g}" if isinstance(label, float) else shortened(label)


def _template_model_of(law: Law, output: int | None, measures: dict[str, Any]) -> TemplateModel:
    """Read a model back (see `TemplateModel.__reduce__`)."""
    return TemplateModel(law.composed(output or 0), law=law, output=output, **measures)
