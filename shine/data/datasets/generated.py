"""A recipe -> a data set: features are drawn by seeded generators, the target is computed from a formula."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.recipe import Feature, Recipe
from shine.data.files.files import MAX_BYTES
from shine.lang.forms.names import identifier, listed, name_problem, normalized, shortened, shown
from shine.lang.interpret import evaluate
from shine.lang.parse import parse


def generate(recipe: Recipe) -> Dataset:
    """Make the data that a recipe describes; the same recipe gives the same bits.

    Parameters
    ----------
    recipe : Recipe

    Returns
    -------
    Dataset
        Without weights.

    Raises
    ------
    DataError
        If a name is invalid, the formula is not part of the language, or a value is not finite.
    """
    problems = [": ".join((".".join(loc), message)) for loc, message in recipe_problems(recipe)]
    if problems:
        raise DataError("; ".join(problems))
    columns = _columns(recipe)
    from shine.compiler.arrays import COMPILED  # the compiler is slow to load, and only generated data need it

    tree = parse(recipe.target, list(columns))
    target = evaluate(tree, list(columns.values()), np.float64, COMPILED)
    target = np.broadcast_to(target, recipe.rows).copy()
    _check_target(recipe, columns, target)
    if recipe.noise:
        target += _noise(recipe, target, _generator(recipe, len(columns)))
    return Dataset.from_arrays(np.column_stack(list(columns.values())), target, features=tuple(columns))


def recipe_problems(recipe: Recipe) -> Iterator[tuple[tuple[str, ...], str]]:
    """Problems of a recipe beyond its types: the keys that lead to each, and a message."""
    above: dict[str, str] = {}
    for given, feature in recipe.features.items():
        if feature.permute is not None and normalized(feature.permute) not in above:
            known = f"the features above it are {listed(above)}" if above else "no feature is above it"
            message = f"{shown(feature.permute)} is not a feature listed above {shown(given)}; {known}"
            yield ("features", given, "permute"), message
        name = normalized(given)
        problem = name_problem(name)
        if problem is not None:
            yield ("features", given), f"the name {problem}; {shown(identifier(given))} would do"
        elif name in above:
            yield ("features", given), f"is one name with {shown(above[name])} in Unicode's normal form; rename one"
        else:
            above[name] = given
    if len(above) == len(recipe.features):
        try:
            parse(recipe.target, list(above))
        except UnsupportedSyntaxError as error:
            yield ("target",), str(error)
    size = 8 * recipe.rows * (len(recipe.features) + 1)
    if size > MAX_BYTES:
        yield ("rows",), f"the data would take {size / 2**30:.3g} GiB; at most {MAX_BYTES / 2**30:g} GiB are made"


def _columns(recipe: Recipe) -> dict[str, Floats]:
    columns: dict[str, Floats] = {}
    for index, (given, feature) in enumerate(recipe.features.items()):
        values = _column(feature, columns, recipe.rows, _generator(recipe, index))
        bad = int((~np.isfinite(values)).sum())
        if bad:
            raise DataError(
                f"features.{shortened(given)}: {bad} of {recipe.rows} values exceed float64; choose a smaller range"
            )
        columns[normalized(given)] = values
    return columns


def _noise(recipe: Recipe, target: Floats, rng: np.random.Generator) -> Floats:
    """Normal noise; a `DataError` if it exceeds the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = recipe.noise * float(target.std())
        noise = rng.normal(0.0, deviation, recipe.rows) if isfinite(deviation) else np.full(recipe.rows, np.inf)
        if np.isfinite(target + noise).all():
            return noise
    raise DataError(
        f"noise: {recipe.noise:g} standard deviations of the target exceed float64; "
        "choose less noise, or a target of smaller numbers"
    )


def _column(feature: Feature, above: dict[str, Floats], rows: int, rng: np.random.Generator) -> Floats:
    if feature.permute is not None:
        return rng.permutation(above[normalized(feature.permute)])
    assert feature.draw is not None
    with np.errstate(over="ignore", invalid="ignore"):
        return feature.draw.values(rows, rng)


def _generator(recipe: Recipe, index: int) -> np.random.Generator:
    """A random generator for each column, so that changes to one feature leave the others as they are."""
    return np.random.default_rng([recipe.seed, index])


def _check_target(recipe: Recipe, columns: dict[str, Floats], target: Floats) -> None:
    bad = np.flatnonzero(~np.isfinite(target))
    if len(bad):
        where = listed(f"{shortened(name)}={values[bad[0]]:.6g}" for name, values in columns.items())
        raise DataError(
            f"target: the formula is NaN or infinite in {len(bad)} of {recipe.rows} rows, the first at {where}"
        )
