"""A recipe -> a data set: features drawn from seeded generators, the target computed from a formula."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shine.data import Dataset, check_features, identifier
from shine.errors import DataError, UnsupportedSyntaxError
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.loading.recipe import Feature, Recipe

Array = NDArray[np.float64]


def generate(recipe: Recipe) -> Dataset:
    """Make the data a recipe describes; the same recipe gives the same bits.

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
        If a name is unfit, the formula is not part of the language, or a value is not finite.
    """
    problems = [": ".join((".".join(loc), message)) for loc, message in recipe_problems(recipe)]
    if problems:
        raise DataError("; ".join(problems))
    columns = _columns(recipe)
    tree = parse(recipe.target, list(recipe.features))
    with np.errstate(all="ignore"):
        target = np.asarray(evaluate(tree, list(columns.values())), dtype=np.float64)
    target = np.broadcast_to(target, recipe.rows).copy()
    _check_target(recipe, columns, target)
    if recipe.noise:
        deviation = recipe.noise * float(target.std())
        target += _generator(recipe, len(columns)).normal(0.0, deviation, recipe.rows)
    return Dataset.from_arrays(np.column_stack(list(columns.values())), target, features=tuple(columns))


def recipe_problems(recipe: Recipe) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with a recipe beyond its types: the keys that lead to it, and what to do about it."""
    above: list[str] = []
    for name, feature in recipe.features.items():
        if feature.permute is not None and feature.permute not in above:
            listed = f"listed above are {', '.join(above)}" if above else "none is"
            message = f"{feature.permute!r} is no feature that is listed above {name!r}; {listed}"
            yield ("features", name, "permute"), message
        try:
            check_features([name])
        except DataError:
            yield ("features", name), f"the name is not an identifier; {identifier(name)!r} would do"
        else:
            above.append(name)
    if len(above) == len(recipe.features):
        try:
            parse(recipe.target, above)
        except UnsupportedSyntaxError as error:
            yield ("target",), str(error)


def _columns(recipe: Recipe) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for index, (name, feature) in enumerate(recipe.features.items()):
        columns[name] = _column(feature, columns, recipe.rows, _generator(recipe, index))
        if not np.isfinite(columns[name]).all():
            raise DataError(f"features.{name}: not every value is a finite number")
    return columns


def _column(feature: Feature, above: dict[str, Array], rows: int, rng: np.random.Generator) -> Array:
    if feature.permute is not None:
        return rng.permutation(above[feature.permute])
    assert feature.draw is not None
    with np.errstate(over="ignore", invalid="ignore"):
        return feature.draw.values(rows, rng)


def _generator(recipe: Recipe, index: int) -> np.random.Generator:
    """A generator for one column alone, so that a feature more leaves the others as they are."""
    return np.random.default_rng([recipe.seed, index])


def _check_target(recipe: Recipe, columns: dict[str, Array], target: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(target))
    if len(bad):
        where = ", ".join(f"{name}={values[bad[0]]:.6g}" for name, values in columns.items())
        raise DataError(
            f"target: the formula is NaN or infinite in {len(bad)} of {recipe.rows} rows, the first at {where}"
        )
