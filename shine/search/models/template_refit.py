"""A template's formula with other constants: names in their place, or values fitted to new groups.

A constant of an unknown function has one name, however often the template calls the function or its derivatives.
Parameters keep their names; a parameter by group has one for each group, `k_A`. Fixed values belong to the structure.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.compiler.threads import processors
from shine.data.columns.headings import frame_headings
from shine.data.columns.numbers import columns_for
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.data.user_data import TrainingArrays
from shine.evaluate.inference.constants import NOTHING_HELD, Form, Held, form_of
from shine.evaluate.losses.form import Loss, loss_of
from shine.lang.derivative import derivative
from shine.lang.forms.names import identifier, shown
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.simplify.simplifier import simplify
from shine.search.problem.template_data import with_template
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.separate_fits import LawComposer, SeparateFits, separately_fitted, spread, started
from shine.search.templates.fits.unknowns import Unknowns
from shine.search.templates.grouping import numbered_by_group, with_numbers_for_texts
from shine.search.templates.law import Groups, Law, by_group, inlined

_STEPS, _TOLERANCE = 50, 1e-13
"""Most steps of a fit, and the share of the error that its next step must promise to remove."""


def with_refitted_groups(
    law: Law,
    headings: Mapping[str, str],
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    loss: str | Loss,
    shrinkage: bool,
) -> Law:
    """The law with constants of the groups in new rows; groups that have no new rows keep theirs.

    A `DataError` if the law has no constants by group, or the data are invalid.
    """
    loss_of(loss)
    if law.groups is None or not any(each.by_group and each.value is None for each in law.template.parameters):
        raise DataError("the template has no constants by group, so there is nothing to refit")
    dataset, groups = _numbered(law, law.groups, headings, X, y, sample_weight)
    composer = LawComposer(law, len(groups.values))
    found = _fitted(composer, GroupedFits(composer, dataset, loss, processors()), dataset, loss, shrinkage)
    if not np.isfinite(found).all():
        at = int(np.argmin(np.isfinite(found).all(axis=0)))
        label = groups.names_as_texts[at]
        raise DataError(f"the formula has no finite values for all rows of group {label}; leave them out")
    names = [each.name for each in composer.parameters]
    return _merged(law, law.groups, groups, dict(zip(names, found, strict=True)))


def _numbered(
    law: Law, known: Groups, headings: Mapping[str, str], X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Dataset, Groups]:
    """The new rows with numbers of their own groups, and these groups."""
    names = [headings.get(name, name) for name in law.features]
    heading = headings.get(known.column, known.column)
    given = frame_headings(X)
    if given is not None and heading not in given and known.column in given:
        heading = known.column
    table, texts = with_numbers_for_texts(X, names, heading)
    if (texts is None) != (known.labels is None):
        kinds = ("numbers", "texts") if texts is None else ("texts", "numbers")
        raise DataError(f"column {shown(heading)} has {kinds[0]} for groups, but in the search they were {kinds[1]}")
    needed = {known.column}.union(*(law.composed(output).used_parameters for output in range(law.n_outputs)))
    columns = columns_for(table, law.features, headings, needed)
    arrays = TrainingArrays(np.column_stack(columns), y, law.features, names, sample_weight)
    dataset = with_template(law.template, arrays)
    return numbered_by_group(dataset, known.column, texts)


def _fitted(composer: LawComposer, fits: GroupedFits, dataset: Dataset, loss: str | Loss, shrinkage: bool) -> Floats:
    """Value of each parameter for each group, shape (n_parameters, n_groups)."""
    # Most known groups whose constants a new group starts from.
    known, groups = started(composer.law, composer.parameters, 8), composer.n_groups
    starts = np.repeat(known[:, None], groups, axis=1)
    individuals = composer.individuals(np.repeat(known, groups, axis=1))
    unknowns = Unknowns.of(composer, individuals, range(groups))
    composed = composer.composed(individuals)
    integers = np.array([each.integer for each in composer.parameters])
    values, errors = separately_fitted(SeparateFits(fits, composed, unknowns), starts, integers, _STEPS, _TOLERANCE)
    centers, variances = spread(composer.law, composer.parameters)
    # Fits of shrunk values: each estimates the noise that the next one weighs them by.
    for _ in range(3 if shrinkage and (variances > 0).all() else 0):
        # The noise, in units of the errors; a group without finite values says nothing about it.
        total = float(stable_sum(np.where(np.isfinite(errors), errors, 0.0)))
        noise = total / max(2 * loss_of(loss).error_log_likelihood * dataset.effective_rows, 1.0)
        charged = SeparateFits(fits, composed, unknowns, np.stack([noise / variances, centers]))
        values, errors = separately_fitted(charged, starts, integers, _STEPS, _TOLERANCE)
    return np.where(np.isfinite(errors)[:, None], values, np.nan).T


def _merged(law: Law, known: Groups, new: Groups, constants: Mapping[str, Floats]) -> Law:
    """The law with the constants of new groups, and of those that it knew and that have no new ones."""
    if known.labels is None or new.labels is None:
        kept = [at for at, value in enumerate(known.values) if value not in new.values]
        order = np.argsort([*(known.values[at] for at in kept), *new.values], kind="stable")
        values = tuple(sorted([*(known.values[at] for at in kept), *new.values]))
        groups = Groups(known.column, values)
    else:
        # Texts that were known keep their numbers; further ones follow.
        kept = [at for at, label in enumerate(known.labels) if label not in new.labels]
        labels = [*(known.labels[at] for at in kept), *new.labels]
        places = {label: at for at, label in enumerate(known.labels)}
        wanted = [*known.labels, *sorted(label for label in new.labels if label not in places)]
        order = np.array([labels.index(label) for label in wanted])
        groups = Groups(known.column, tuple(map(float, range(len(wanted)))), tuple(wanted))
    merged = {
        name: np.concatenate([np.asarray(law.constants[name])[kept], own])[order] for name, own in constants.items()
    }
    return replace(law, constants={**law.constants, **merged}, groups=groups)


MOST_CONSTANTS = 100
"""Most constants whose intervals are told: the work grows with their square."""


def form_of_law(law: Law, held: Held = NOTHING_HELD, output: int = 0) -> Form:
    """The form of a formula of a template; a `DataError` if it has more than `MOST_CONSTANTS` constants.

    Parameters
    ----------
    law : Law
    held : Held
        Which numbers of the unknown functions are no constants (see `shine.evaluate.inference.constants`).
    output : int
        The output that it is the form of, with the functions and parameters that this one uses.
    """
    body = law.template.outputs[output]
    law = _used_by(law, body)
    parameters = _free_parameters(law)
    taken = {*law.features, *law.constants, *parameters}
    forms: dict[str, Form] = {}
    for name, tree in law.functions.items():
        before = list(forms.values())
        first, place = sum(len(each.names) for each in before), sum(each.count for each in before)
        forms[name] = form_of(tree, held, first=first, first_place=place, taken=taken)
    own = {name: value for each in forms.values() for name, value in zip(each.names, each.values, strict=True)}
    values = own | parameters
    if len(values) > MOST_CONSTANTS:
        raise DataError(f"the formula has {len(values)} constants; intervals are told for at most {MOST_CONSTANTS}")
    exact = {name: value for name, value in law.constants.items() if isinstance(value, float) and name not in values}
    by_groups = [name for name, value in law.constants.items() if not isinstance(value, float)]
    names = (*values, *law.features, *by_groups)
    definitions = _definitions(law, forms)
    tree = inlined(body, definitions, names, exact, free=own)
    used = tree.used_parameters
    by_name = _names(law)
    assignments = tuple((name, _by_group(law, name, by_name[name], parameters)) for name in by_groups if name in used)
    return Form(
        replace(tree, parameters=(*values, *law.features), assignments=assignments),
        tuple(values),
        np.array(list(values.values()), np.float64),
        tuple(dict.fromkeys(number for each in forms.values() for number in each.exact)),
        held,
        (*(place for each in forms.values() for place in each.places), *(-1 for _ in parameters)),
        sum(each.count for each in forms.values()),
        tuple(place for each in forms.values() for place in each.implied),
        law.with_groups(inlined(body, definitions, names, exact, free=own)),
    )


def _used_by(law: Law, body: Tree) -> Law:
    """The law with the functions and the parameters that an output uses."""
    found = functions_of(body)
    called = {name: call for name, call in law.template.calls.items() if name in found}
    unknowns = {unknown for unknown, _ in called.values()}
    return replace(
        law,
        template=replace(law.template, calls=called),
        functions={name: tree for name, tree in law.functions.items() if name in unknowns},
        constants={name: value for name, value in law.constants.items() if name in body.used_parameters},
    )


def _free_parameters(law: Law) -> dict[str, float]:
    """The numbers that were fitted for parameters, by name; those at a bound are held there."""
    fitted = {each.name: each.bounds for each in law.template.parameters if each.value is None and not each.integer}
    names = _names(law)
    found: dict[str, float] = {}
    for name, value in law.constants.items():
        own = {name: value} if isinstance(value, float) else dict(zip(names[name], value, strict=True))
        found |= {each: number for each, number in own.items() if name in fitted and number not in fitted[name]}
    return found


def _names(law: Law) -> dict[str, list[str]]:
    """Names of the values of each parameter by group, none of which is that of something else."""
    taken = {*law.features, *law.constants}
    found: dict[str, list[str]] = {}
    for parameter, value in law.constants.items():
        if not isinstance(value, float):
            assert law.groups is not None
            told = [identifier(f"{parameter}_{label}") for label in law.groups.names_as_texts]
            if len(set(told)) < len(told):
                told = [f"{parameter}_{number}" for number in range(len(told))]
            while not taken.isdisjoint(told):
                told = [f"{each}_" for each in told]
            taken.update(told)
            found[parameter] = told
    return found


def _by_group(law: Law, name: str, names: Sequence[str], free: Collection[str]) -> ast.expr:
    assert law.groups is not None
    own: Any = law.constants[name]
    numbers: Any = [ast.Name(each) if each in free else value for each, value in zip(names, own.tolist(), strict=True)]
    return by_group(law.groups.column, law.groups.values, numbers)


def _definitions(law: Law, forms: Mapping[str, Form]) -> dict[str, Tree]:
    """The unknown functions and their derivatives, with names in place of constants."""
    found: dict[str, Tree] = {}
    for name, (unknown, by) in law.template.calls.items():
        tree = forms[unknown].tree
        for place in by:
            tree = simplify(derivative(tree, law.functions[unknown].parameters[place]), functions=COMPILED)
        found[name] = tree
    return found
