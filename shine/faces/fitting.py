"""`shine.fit`: the constants of a formula that the user has, and its place beside a front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.data.columns.headings import frame_headings
from shine.evaluate.tiers.machine_tier import losses_and_r2
from shine.faces.evolving import evolve
from shine.lang.forms.names import identifier, listed
from shine.lang.simplify.simplifier import simplify
from shine.search.models.certainty import population_of
from shine.search.models.front import Front
from shine.search.models.measuring.rivals import lengths
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.template_model import TemplateModel
from shine.search.problem.scaling import with_functions
from shine.search.templates.reading import TemplateSource, template
from shine.search.templates.template import Template


def fit(
    formula: TemplateSource,
    X: ArrayLike,
    y: ArrayLike,
    *,
    parameters: Mapping[str, Any] | Sequence[str] | None = None,
    beside: Result | Front | None = None,
    **options: Any,
) -> Result:
    """Fit the parameters of a formula that you have: ``shine.fit("a*exp(b/(x - c))", table, "y")``.

    Parameters
    ----------
    formula : str, function, Template or mapping
        A template without unknown functions (see `shine.template`). Names that are no columns are parameters;
        ``k[day]`` has a value for each day. Numbers stay as they are.
    X, y
        As for `shine.evolve`.
    parameters : mapping or sequence of str, optional
        Bounds, starts and fixed values: ``{"n": (0, 1)}`` (see `shine.template`).
    beside : Result or Front, optional
        Of a search in the same rows: `reason` then tells how many nats the formula needs more than the chosen one. Its
        noise is that of the fit, unless `noise` says another.
    **options
        Of `shine.evolve`: `sigma`, `noise`, `loss`, `features`, `seed`, ...

    Returns
    -------
    Result
        Its only formula has the most likely parameters; it tells intervals and residuals, and exports, as others do.

    Raises
    ------
    DataError, UnsupportedSyntaxError, TypeError, ValueError
        If the data, the formula or an option is invalid.

    Examples
    --------
    >>> x = [[1.0], [2.0], [4.0]]
    >>> fit("a*exp(-b*t)", x, [4.0, 2.1, 0.5], features=["t"]).best.formula()
    '...*exp(-...*t)'
    """
    front = beside.front if isinstance(beside, Result) else beside
    if front is not None and options.get("sigma") is None and front.noise != "sigma":
        options.setdefault("noise", front.noise)
    given: dict[str, Any] = {"unknown": [], **({} if parameters is None else {"parameters": parameters})}
    if isinstance(formula, str):
        X = X if {"features", "loss_columns"} & options.keys() else _used(X, formula, [y, *options.values()])
        formula = {"formula": formula, **given}
    elif isinstance(formula, Mapping):
        formula = {**given, **formula}
    elif not isinstance(formula, Template):
        formula = template(formula, **given)
    elif formula.unknowns:
        raise ValueError(f"the template has the unknown function {formula.unknowns[0].name}; search with shine.evolve")
    result = evolve(X, y, template=formula, **options)
    if front is None:
        return result
    reason = f"{result.reason}; {_place(result.best, front)}"
    return replace(result, front=replace(result.front, reason=reason))


def _used(X: Any, formula: str, others: Sequence[object]) -> Any:
    """A data frame without the columns that neither the formula nor another argument names."""
    headings = frame_headings(X)
    if headings is None:
        return X
    named = [each for each in headings if each in formula or identifier(each) in formula]
    if not named:
        raise DataError(f"the formula names no column of the data; there are {listed(headings)}")
    texts = {each for each in others if isinstance(each, str)}
    return X[[each for each in headings if each in named or each in texts]]


def _place(model: Model, front: Front) -> str:
    """How much longer a formula's description of the rows is than that of the chosen formula of a front."""
    first = front[0]
    if isinstance(first, TemplateModel):
        raise DataError("beside: the front is that of a template; give the result of a search without one")
    if first.basis is None or first.basis.of is not None:
        raise DataError("beside: a front from a file does not know its rows; search again")
    rows = first.basis.rows
    if missing := set(model.tree.used_parameters) - set(rows.features):
        raise DataError(f"beside: the front has no column {min(missing)}; its columns are {listed(rows.features)}")
    # The search writes whole powers as products, which have no constants.
    squares = with_functions(population_of([model], rows.features).primitives, ["square", "mul"])
    tree = simplify(replace(model.tree, parameters=rows.features), squares)
    (loss,), _ = losses_and_r2(population_of([Model(tree, 0.0, 0.0)], rows.features), rows, first.basis.loss)
    placed = replace(first, tree=tree, loss=float(loss))
    own, chosen = lengths([*front, placed])[[-1, front.best_index]].tolist()
    if math.isinf(max(own, chosen)):
        return "it is not exact, and the rows have a formula that is" if math.isinf(own) else "it is exact"
    nats = own - chosen
    return f"it needs {abs(nats):.1f} nats {'more' if nats >= 0 else 'less'} than the chosen {front.best.formula()}"
