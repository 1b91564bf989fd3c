"""The preparation of a search: its primitives, its rows and features, its guesses and its constraint rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError, ShineError, UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.losses.reading import predicts_classes
from shine.evaluate.protocols import Linearizer, PopulationEvaluator
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.monotonic import Monotonicity
from shine.formats.read.guesses import Guess, guess_tree
from shine.lang.forms.names import listed, shown
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import functions_of, tape_from_tree
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.python.known import BOOLEAN
from shine.lang.vocabulary import primitive_table
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.constraints.constraints import Constraints, check_constraints
from shine.search.evolution.operators.slots import excess
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.scaling import Scaling, without_line
from shine.search.problem.settings import FitnessSettings
from shine.search.seeding import SeedingTask
from shine.search.seeding.screen.skeletons import Rows

_GUESS_ERRORS = (UnsupportedSyntaxError, GraphImportError, ShineError, TypeError, ValueError)
"""The kinds of errors about a guess."""

SEEDING_ROWS = 1000
"""Most rows that the seeding looks at."""


def warn_of_bitwise(functions: Sequence[Primitive], dataset: Dataset) -> None:
    """Warn of bitwise primitives, and functions that call them, whose arguments can hardly be truth values.

    That is so if no column is one of 0 and 1, and no other primitive makes 0 and 1 of the columns.
    """
    suspects = [each for each in functions if _is_bitwise(each)]
    columns = list(dataset.columns[:, :1000])  # most rows that primitives are tried on
    if not suspects or any(_are_truths(column) for column in columns):
        return
    others = [each for each in functions if each not in suspects]
    if any(_are_truths(values) for each in others for values in _tried(each, columns)):
        return
    empty = [each.name for each in suspects if not any(np.isfinite(values).all() for values in _tried(each, columns))]
    if empty:
        are, have = ("is", "has") if len(empty) == 1 else ("are", "have")
        warnings.warn(
            f"{listed(empty)} {are} defined for 0 and 1 only and {have} no value for other numbers; no column holds "
            "only 0 and 1, and no primitive, such as a comparison, makes them: add one, or leave out "
            f"{'it' if len(empty) == 1 else 'them'}",
            UserWarning,
            stacklevel=2,
        )


def _is_bitwise(primitive: Primitive) -> bool:
    """Whether a primitive is bitwise, or calls one that is."""
    own = primitive.definition
    within = () if own is None else (own.functions[name] for name in functions_of(own) if name in own.functions)
    return primitive.name in BOOLEAN or any(_is_bitwise(each) for each in within)


def _are_truths(values: Floats) -> bool:
    return bool(np.isin(values, (0, 1)).all())


def _tried(primitive: Primitive, columns: Sequence[Floats]) -> list[Floats]:
    """Values of a primitive of neighbouring columns."""
    names = [f"x{place}" for place in range(primitive.arity)]
    tree = parse(f"{primitive.name}({', '.join(names)})", names, {primitive.name: primitive})
    starts = range(min(len(columns), 20))  # most columns that are the first argument
    return [
        evaluate(tree, [columns[(start + place) % len(columns)] for place in range(primitive.arity)])
        for start in starts
    ]


@dataclass(frozen=True, eq=False)
class Task:
    """The data, the primitives and the guesses of a search.

    Parameters
    ----------
    features : tuple of str
        All columns, also forbidden ones: the parameters of the models.
    user_rows : Dataset
        The given data without the forbidden features.
    scaling : Scaling
    dataset : Dataset
        The given data, scaled.
    primitives : PrimitiveSet
    guesses : Population, optional
        The guesses as individuals over the scaled data; None without guesses.
    headings : mapping of str to str
        Original headings of the columns, by feature (see `Dataset`).
    """

    features: tuple[str, ...]
    user_rows: Dataset
    scaling: Scaling
    dataset: Dataset
    primitives: PrimitiveSet
    guesses: Population | None
    headings: Mapping[str, str]


def _guess(
    position: int,
    source: Guess,
    features: Sequence[str],
    table: Mapping[str, Primitive],
    names: Sequence[str],
    scaled: bool,
) -> Tree:
    """A guess as a tree; an error says which guess it is."""
    try:
        tree = guess_tree(source, features, table, names)
        if scaled and not functions_of(tree) <= set(names):
            tree = without_line(tree)  # results have slopes and intercepts even if the search lacks their functions
        tape_from_tree(tree, PrimitiveSet(select(table, names), tuple(features)))  # reports missing primitives
        return tree
    except (ShineError, TypeError, ValueError) as error:
        kind = next(kind for kind in _GUESS_ERRORS if isinstance(error, kind))
        raise kind(f"guesses[{position}]: {error}") from None


def _warn_of_guesses(
    guesses: Sequence[tuple[int, Tree]], constraints: Constraints, primitives: PrimitiveSet, scaled: bool
) -> None:
    """Warn of guesses, given with their positions, that no search may consider."""
    for key in ("forbidden", "limits", "nesting", "arguments") if guesses else ():
        alone = Constraints(**{key: getattr(constraints, key)})
        rules = CompiledConstraints(alone, primitives, "written" if scaled else "none")
        allowed = rules.allowed(Population.from_trees([tree for _, tree in guesses], primitives))
        for (position, tree), kept in zip(guesses, allowed.tolist(), strict=True):
            if not kept:
                text = f"guesses[{position}]: {shown(tree)} breaks constraints.{key}, so it takes no part in the search"
                warnings.warn(text, UserWarning, stacklevel=2)


def prepared(
    dataset: Dataset, settings: TranslatedSettings, loss: Loss, *, linear_scaling: bool, scale_target: bool = True
) -> Task:
    """The task of a search.

    Parameters
    ----------
    dataset : Dataset
    settings : TranslatedSettings
    loss : Loss
    linear_scaling : bool
        Whether formulas are judged with a slope and an intercept.
    scale_target : bool
        Whether the target may be divided by a power of two.

    Raises
    ------
    UnsupportedSyntaxError, GraphImportError, ValueError
        If a primitive, a guess or a constraint is invalid.
    """
    table, names = primitive_table(settings.primitives)
    functions, constraints = select(table, names), settings.constraints
    warn_of_bitwise(functions, dataset)
    trees = [
        _guess(position, source, dataset.features, table, names, linear_scaling)
        for position, source in enumerate(settings.guesses)
    ]
    check_constraints(constraints, functions, dataset.features, linear_scaling, predicts_classes(loss))
    # Formulas of an earlier front are guesses of nobody.
    own = [(at, tree) for at, tree in enumerate(trees) if not isinstance(settings.guesses[at], Tree)]
    _warn_of_guesses(own, constraints, PrimitiveSet(functions, dataset.features), linear_scaling)
    # A forbidden feature is never drawn if the search does not know it.
    user_rows = dataset.without(constraints.forbidden)
    scaling = Scaling.of(user_rows, target=scale_target)
    scaled = scaling.applied(user_rows)
    primitives = PrimitiveSet(functions, scaled.features)
    trees = [tree for tree in trees if not any(("name", name) in tree.tokens for name in constraints.forbidden)]
    trees = list(_entering(trees, scaling, primitives, settings, linear_scaling))
    if constraints.required:
        # However short the search, it has a formula of all required columns.
        joint = parse(("+" if "add" in primitives.function_codes else "*").join(constraints.required), scaled.features)
        trees += [joint] * _fits(joint, primitives, settings)
    guesses = Population.from_trees(trees, primitives) if trees else None
    return Task(dataset.features, user_rows, scaling, scaled, primitives, guesses, dataset.headings)


def _entering(
    trees: Sequence[Tree],
    scaling: Scaling,
    primitives: PrimitiveSet,
    settings: TranslatedSettings,
    linear_scaling: bool,
) -> Iterator[Tree]:
    """The guesses over the scaled data, without those that only the factors of the scaling keep from fitting in."""
    for tree in trees:
        entered = scaling.entering(tree)
        if entered != tree and linear_scaling:
            entered = without_line(entered)  # its slope is fitted anew
        if entered == tree or _fits(entered, primitives, settings):
            yield entered
        elif not _fits(tree, primitives, settings):
            yield tree  # the evolution says which limit it exceeds


def _fits(tree: Tree, primitives: PrimitiveSet, settings: TranslatedSettings) -> bool:
    """Whether a search can hold a formula."""
    if not functions_of(tree) <= set(primitives.function_codes):
        return False
    evolving = settings.evolution
    return excess(Population.from_trees([tree], primitives), evolving.max_size, evolving.max_depth) is None


def constraint_compiler(
    constraints: Constraints, sample: Dataset, threads: int
) -> Callable[..., CompiledConstraints] | None:
    """Compiler of the constraints for a primitive set and a kind of scaling; None without constraints."""
    if not constraints:
        return None
    wrong_shares = None
    if constraints.monotonic:
        # With a generator of its own, it draws the same pairs of rows however long the search has run.
        wrong_shares = Monotonicity(sample, constraints.monotonic, threads, np.random.default_rng(0)).wrong_shares
    return partial(CompiledConstraints, constraints, wrong_shares=wrong_shares)


def seeding_task(rows: Dataset, primitives: PrimitiveSet, threads: int, **options: Any) -> SeedingTask:
    """The seeding's task for some rows; the options are further fields of `SeedingTask`."""
    weights = np.ones(rows.n_rows) if rows.weights is None else np.asarray(rows.weights, np.float64)
    return SeedingTask(
        Rows(rows.columns, rows.target, weights),
        primitives,
        MachineEvaluator(rows, "mse", False, "float64", threads).predict,
        partial(linearizer_of, rows.features, threads),
        **options,
    )


def linearizer_of(features: tuple[str, ...], threads: int, rows: Rows) -> Linearizer:
    """Fitter of the constants of guesses to some rows by their squared errors."""
    return MachineLinearizer(
        Dataset(np.ascontiguousarray(rows.columns), rows.target, rows.weights, features), "mse", threads
    )


def evaluator_for(sample: Dataset, fitness: FitnessSettings, loss: Loss, fitting_rows: int) -> PopulationEvaluator:
    """The evaluator of a loss over some rows; with linear scaling, its lines are those of the least loss.

    Parameters
    ----------
    sample : Dataset
    fitness : FitnessSettings
    loss : Loss
    fitting_rows : int
        Most rows that lines are fitted to where they do not follow from moments.
    """
    dtype, threads = fitness.dtype, fitness.threads or processors()
    if fitness.linear_scaling and not loss.kind.follows_from_moments:
        return FittedLines(sample, fitting_rows, loss, dtype, threads)
    return evaluator_of(sample, loss, fitness.linear_scaling, dtype, fitness.tier, threads)
