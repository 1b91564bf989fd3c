"""From the individuals of a finished search to its models: complete, polished, short."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.domain import Domain
from shine.evaluate.losses.form import Loss
from shine.evaluate.scores import Scores, lines_like
from shine.evaluate.tiers.machine_tier import MachineEvaluator, losses_and_r2
from shine.evaluate.tiers.rows import target_of
from shine.lang.forms.names import value_text
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape, functions_of
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.numerals import rounded, rounded_to
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.lang.simplify.tidy import nodes_and_figures
from shine.lang.simplify.tidy import tidy as tidy_form
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.scoring import places
from shine.search.finishing.poles import form_of, individuals_to_refine, without_poles
from shine.search.finishing.polishing import POLISHING_ROWS, Polishing, population_of, preferred
from shine.search.finishing.required import with_required
from shine.search.finishing.shorter import shortened, tidied
from shine.search.finishing.waves import Grid, grids_of, with_slow_waves
from shine.search.models.certainty import fitted_constants, lengths_of, written_length
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.problem.reference_losses import Evidence, best_constant, rounding_error
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions, with_line
from shine.search.problem.unwritten import description_of

TIED = 3.0
"""Nats by which an individual may describe the data worse than the front and still be refined: fitting to convergence
may change the order."""

NEAR, MOST_BESIDE, MOST_ROWS = 4.6, 12, 1000
"""Formulas beside the front: the nats by which their description is longer than the best at most, odds of 100; their
number at most; and the rows from which they are not kept: so many rows hardly leave ties."""

SAME = 1e-4
"""Share of the squared errors by which two formulas with the same values differ at most."""

TOLERANCE = 1e-13
"""Relative gain below which constants count as fitted to convergence."""


Refined = tuple[tuple[Model, ...], tuple[Model, ...], str]
"""The front, what is beside it, and what the reason tells of better formulas that were left out."""


@dataclass(frozen=True)
class Refinement:
    """Maker of the front of a finished search.

    Parameters
    ----------
    loss : Loss
    weights : mapping of str to float
        Complexity of primitives, features and constants, by name (see `shine.search.models.model.Model`).
    allows : callable
        Says whether a formula may have so many nodes, its line included, and be exact or not.
    enough : float
        Loss below which two formulas are equally right.
    threads : int
    rules : callable, optional
        Compiles the constraints for a primitive set: the front keeps to them, and its losses contain the penalties.
    out_of_time : callable
        Says whether to stop making constants simple.
    most : float
        Most individuals, if the front has fewer: the front itself is always refined.
    required : sequence of str
        Features that formulas must have, if the rows see them.
    constants : bool
        Whether formulas may get further constants.
    """

    loss: Loss
    weights: Mapping[str, float]
    allows: Callable[[int, bool], bool]
    enough: float
    threads: int
    rules: Callable[[PrimitiveSet], CompiledConstraints] | None
    out_of_time: Callable[[], bool]
    most: float
    required: Sequence[str] = ()
    constants: bool = True

    def front(self, outcome: Outcome, rows: Dataset, polish: bool) -> Refined:
        """The Pareto front of a finished search, and the formulas beside it (see `Front`), which may be the law, too.

        Parameters
        ----------
        outcome : Outcome
        rows : Dataset
            All rows.
        polish : bool
            Whether to fit constants and make them simple: this takes nearly all of the time.
        """
        draft = Draft(self, outcome, rows)
        for stage in STAGES:
            if polish or not stage.polishes:
                stage.apply(draft)
        return draft.front, draft.beside, _told(draft)


@dataclass
class Draft:
    """A front in the making, as the stages of an end leave it (see `STAGES`).

    Attributes
    ----------
    end : Refinement
    outcome : Outcome
    rows : Dataset
    found, trees : list of Tree
        The best constant and the individuals with their lines; the same, simplified.
    fitted : Population
        The trees with fitted constants, once there are some.
    versions : list of list of Tree
        Versions of each formula, the simplest last.
    proposed : list of Tree
        Further formulas that were made of those that are kept.
    kept : list of Model
        Formulas that may be chosen.
    dropped : dict of str to list of Model
        What rules dropped, by the reason.
    front, beside : tuple of Model
    """

    end: Refinement
    outcome: Outcome
    rows: Dataset
    found: list[Tree] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    fitted: Population | None = None
    versions: list[list[Tree]] = field(default_factory=list)
    proposed: list[Tree] = field(default_factory=list)
    kept: list[Model] = field(default_factory=list)
    dropped: dict[str, list[Model]] = field(default_factory=dict)
    front: tuple[Model, ...] = ()
    beside: tuple[Model, ...] = ()

    @cached_property
    def primitives(self) -> PrimitiveSet:
        """Functions of the formulas: those of the search, and of lines."""
        return with_functions(self.outcome.front.primitives, LINE_FUNCTIONS)

    @cached_property
    def domain(self) -> Domain:
        """The neighbourhood of the rows."""
        return Domain(self.rows)

    @cached_property
    def evidence(self) -> Evidence:
        """Nats between losses."""
        return Evidence.of(self.rows, self.end.loss)

    @cached_property
    def described(self) -> DescriptionLength:
        """Nats of descriptions."""
        return description_of(self.rows, self.end.loss, self.primitives)

    @cached_property
    def polishing(self) -> Polishing:
        """Fits of constants."""
        end = self.end
        return Polishing(end.loss, end.threads, TOLERANCE, end.out_of_time, partial(rounding_error, loss=end.loss))

    @cached_property
    def some(self) -> Dataset:
        """Some rows."""
        return self.rows.sampled(POLISHING_ROWS, np.random.default_rng(0))

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """Of the features."""
        return grids_of(self.some.features, self.some.columns)

    def simpler(self, tree: Tree) -> Tree:
        """A simplified formula, of slow waves."""
        simple = simplify(tree, primitives=self.primitives, functions=COMPILED, ranges=self.rows.ranges)
        return with_slow_waves(simple, self.grids, list(self.some.columns))

    def measured(self, trees: Iterable[Tree]) -> list[Model]:
        """Formulas as models."""
        end = self.end
        return measured(list(trees), self.rows, end.loss, end.weights, self.primitives, end.threads, end.rules)

    def refitted(self, trees: Iterable[Tree]) -> list[list[Model]]:
        """Versions of simplified formulas: as they are, with fitted constants, and with simple numbers for them."""
        held = [*map(self.simpler, trees)]
        fitted = self.polishing.fitted(population_of(held, self.primitives), self.rows)
        return [*map(self.measured, (held, *self.polishing.versions(fitted, self.primitives, self.rows)))]

    def nats(self, worse: Model, better: Model) -> float:
        """Log-likelihood by which a model is better than another."""
        return self.evidence.nats(worse.loss, better.loss)

    def plainest(self, models: Sequence[Model]) -> list[Model]:
        """The best version of each form: versions compete by their digits; forms by what the rows determine.

        Of forms with the same values, such as ``a/exp(b)`` and ``a*exp(-b)``, the simplest stays.
        """
        versions: dict[object, list[Model]] = {}
        for model in models:
            versions.setdefault(form_of(model.tree), []).append(model)
        price = partial(surprise, evidence=self.evidence)
        plain = sorted((min(each, key=price) for each in versions.values()), key=lambda model: model.complexity)
        rows, kept = self.some, dict[Model, Floats]()
        for model in plain:
            with np.errstate(all="ignore"):
                values = evaluate(model.tree, list(rows.columns), np.float64, COMPILED)
                apart = SAME * stable_sum(rows.row_weights * (rows.target - values) ** 2)
                differs = [stable_sum(rows.row_weights * (values - other) ** 2) > apart for other in kept.values()]
            if all(differs) or model.loss <= self.end.enough:
                kept[model] = values
        return list(kept)

    def front_of(self, models: Sequence[Model]) -> tuple[Model, ...]:
        """The Pareto front of some models."""
        price = partial(surprise, evidence=self.evidence, described=self.described)
        return pareto_front(self.plainest(models), self.end.enough, price)


def completed(draft: Draft) -> None:
    """Write the line into each individual worth it; those with as many constants as rows fit anything."""
    end, rows = draft.end, draft.rows
    tied = draft.evidence.tied(draft.outcome.scores.losses, TIED)
    individuals, forms = individuals_to_refine(draft.outcome, draft.domain, tied, end.most, draft.described)
    constant = Tree(rows.features, ast.Constant(_constant(rows, end.loss)))
    complete = _completed(individuals, forms, rows, end.loss, end.threads)
    draft.found = [constant, *(tree for tree in complete if fitted_constants(tree) < max(rows.effective_rows, 2))]
    draft.trees = list(map(draft.simpler, draft.found))


def fitted(draft: Draft) -> None:
    """Fit constants to convergence."""
    draft.fitted = draft.polishing.fitted(population_of(draft.trees, draft.primitives), draft.rows)


def simple_numbers(draft: Draft) -> None:
    """Make versions with fitted constants, and with simple numbers for them."""
    assert draft.fitted is not None
    draft.versions = [draft.trees, *draft.polishing.versions(draft.fitted, draft.primitives, draft.rows)]


def best_versions(draft: Draft) -> None:
    """Keep the simplest version of each formula that is as good as the others."""
    if not draft.versions:
        # Skip forms with functions that the search did not use: these would have to be compiled first.
        known, pairs = draft.primitives.table.keys(), zip(draft.trees, draft.found, strict=True)
        draft.versions = [[simple if functions_of(simple) <= known else tree for simple, tree in pairs]]
    if draft.end.rules is not None:
        draft.versions.insert(0, draft.found)  # a simplified formula may break a constraint
    models = [draft.measured(version) for version in draft.versions]
    # The constant formula comes first. Its best version stays, not its simplest: all others are compared with it.
    _check_losses(models, draft.end.loss)
    least = min(version[0].loss for version in models)
    constant = next(version[0] for version in models if version[0].loss <= least + TOLERANCE * abs(least))
    versions_of_each = zip(*(version[1:] for version in models), strict=True)
    chosen = [constant, *map(partial(preferred, nats=draft.nats), versions_of_each)]
    # With simple constants, many formulas are the same.
    draft.kept = list({model.tree: model for model in chosen}.values())


def further_constants(draft: Draft) -> None:
    """Give parts of the best formula a factor or a summand, as long as the rows ask for one.

    Evolution tries them at random; here each part has its turn.
    """
    end, allowed = draft.end, draft.outcome.front.primitives.function_codes
    kinds = [(name, value) for name, value in (("mul", 1.0), ("add", 0.0)) if name in allowed]
    for _ in range(3 if kinds and end.constants else 0):  # most further constants
        best = draft.kept[int(np.argmin(lengths_of(draft.kept, draft.described)))]
        if best.loss <= end.enough or end.out_of_time():
            break
        fitted = draft.polishing.fitted(_with_constants(best.tree, draft.primitives, kinds), draft.rows)
        models = [best, *draft.measured(map(fitted.tree, range(len(fitted))))]
        if not (at := int(np.argmin(lengths_of(models, draft.described)))):
            break
        versions = draft.polishing.versions(fitted.take(np.array([at - 1])), draft.primitives, draft.rows)
        found = preferred([model for version in versions for model in draft.measured(version)], draft.nats)
        if not np.argmin(lengths_of([best, found], draft.described)):
            break
        draft.kept.append(found)


def _with_constants(tree: Tree, primitives: PrimitiveSet, kinds: Sequence[tuple[str, float]]) -> Population:
    """A formula with one more constant: a function of each kind, which changes no value, after each part."""
    given = population_of([tree], primitives)
    codes, tape = given.primitives.function_codes, given.tape(0)
    return Population.from_tapes(
        [
            Tape(np.insert(tape.codes, end, [CONSTANT, codes[name]]), np.insert(tape.values, end, [value, 0.0]))
            for end in (np.flatnonzero(tape.codes != CONSTANT) + 1).tolist()
            for name, value in kinds
        ],
        given.primitives,
    )


def tidy(draft: Draft) -> None:
    """Write formulas as people do."""
    draft.kept = tidied(draft.kept, draft.rows, draft.primitives, draft.end.rules)


def shorter_forms(draft: Draft) -> None:
    """Propose smaller expressions with the same values for parts of exact formulas."""
    primitives = draft.outcome.front.primitives
    shorter = shortened(draft.kept, draft.end.enough, draft.rows, primitives, draft.end.out_of_time)
    draft.proposed += [model.tree for model in shorter]


def allowed(draft: Draft) -> None:
    """Keep formulas with finite losses that are not too long: individuals are not, but with their lines they may be."""
    if draft.proposed:
        draft.kept += draft.measured(draft.proposed)
    enough, allows = draft.end.enough, draft.end.allows
    draft.kept = [
        each for each in draft.kept if math.isfinite(each.loss) and allows(each.tree.size, each.loss <= enough)
    ]


def required(draft: Draft) -> None:
    """Leave required features out of what the rows do not see them in, and formulas without one if the rows see all."""
    end = draft.end

    def refitted(trees: list[Tree]) -> list[Model]:
        return [preferred(models, draft.nats) for models in zip(*draft.refitted(trees), strict=True)]

    def lengths(models: Sequence[Model]) -> Floats:
        return lengths_of([replace(model, loss=max(model.loss, end.enough)) for model in models], draft.described)

    again = None if draft.fitted is None else refitted
    draft.kept = with_required(draft.kept, end.required, draft.rows, draft.primitives, lengths, again)


def poles(draft: Draft) -> None:
    """Drop formulas with poles near the data (see `shine.search.finishing.poles`)."""
    stay = without_poles(draft.kept, draft.end.enough, draft.domain)
    draft.dropped["with a pole"] = [model for model in draft.kept if model not in stay]
    draft.kept = stay


def on_front(draft: Draft) -> None:
    """Put the best formula of each complexity on the front."""
    draft.front = draft.front_of(draft.kept)


def short_numbers(draft: Draft) -> None:
    """Write the exact formula of the front with the numbers that people write: figures count as nodes do.

    Where terms are nearly parallel, the errors of their constants compensate each other: one at a time, none can be
    replaced. ``9.81*x*(0.050968399592253*y + 1)`` has short numbers in the form ``x*(0.5*y + 9.81)``.
    """
    end, front = draft.end, draft.front
    if not front or front[-1].loss > end.enough:
        return
    left_out = [model for models in draft.dropped.values() for model in models]
    exact = [model for model in draft.kept if model.loss <= end.enough and model not in left_out]
    exact.sort(key=lambda model: model.complexity)
    # Exact formulas, the simplest, that are written with short numbers; and digits of their constants that are surely
    # right
    write = partial(tidy_form, functions=COMPILED, ranges=draft.rows.ranges, digits=9, exact=True)
    trees = [write(model.tree) for model in (*exact[:8], *_without_trifles(draft, exact[:3]))]
    found = [each for each in draft.measured(trees) if each.loss <= end.enough and end.allows(each.tree.size, True)]
    lengths = [(nodes_and_figures(each.tree) - each.tree.size, each) for each in (front[-1], *found)]
    best = min(lengths, key=lambda each: (each[1].complexity + each[0], each[0]))[1]
    draft.front = pareto_front([*front[:-1], best], end.enough)


def _without_trifles(draft: Draft, exact: Sequence[Model]) -> Iterator[Model]:
    """Exact formulas that have a constant less than some, and so on, the others fitted.

    A constant of 0 takes a term along, one of 1 a factor. One that only makes up for another, or for rounding, is none
    of the law's: ``2*log(1.1*x + 1.1) - 0.19`` is ``2*log(x + 1)``.
    """
    while exact and not draft.end.out_of_time():
        given = population_of([model.tree for model in exact], draft.primitives)
        owners, columns, _ = places(given)
        variants = dict[Tree, None]()
        for number in (0.0, 1.0):
            other = given.take(owners)
            other.values[np.arange(len(owners)), columns] = number
            less = ((exact[owner], draft.simpler(other.tree(at))) for at, owner in enumerate(owners))
            variants |= {new: None for old, new in less if fitted_constants(new) < fitted_constants(old.tree)}
        found = [model for version in draft.refitted(variants) for model in version if model.loss <= draft.end.enough]
        yield from found
        exact = sorted(found, key=lambda model: model.complexity)[:2]


def beside(draft: Draft) -> None:
    """Keep formulas beside the front that may be the law as well, if there is noise and there are few rows."""
    front, rows = draft.front, draft.rows
    if not front or front[-1].loss <= draft.end.enough or rows.n_rows > MOST_ROWS:
        return
    own = {form_of(model.tree) for model in front}
    every = [*front, *(model for model in draft.plainest(draft.kept) if form_of(model.tree) not in own)]
    lengths = lengths_of(every, draft.described)
    near = [at for at in np.argsort(lengths, kind="stable").tolist() if lengths[at] <= lengths.min() + NEAR]
    draft.beside = tuple([every[at] for at in near if at >= len(front)][:MOST_BESIDE])


@dataclass(frozen=True)
class Stage:
    """A stage of the end: its name, what it does to a draft, and whether it is left out if the user interrupts."""

    name: str
    apply: Callable[[Draft], None]
    polishes: bool = False


STAGES = (
    Stage("completed", completed),
    Stage("fitted", fitted, polishes=True),
    Stage("simple numbers", simple_numbers, polishes=True),
    Stage("best versions", best_versions),
    Stage("further constants", further_constants, polishes=True),
    Stage("tidy", tidy),
    Stage("shorter forms", shorter_forms, polishes=True),
    Stage("required", required),
    Stage("allowed", allowed),
    Stage("poles", poles),
    Stage("front", on_front),
    Stage("short numbers", short_numbers, polishes=True),
    Stage("beside", beside),
)
"""The end of a search, from its individuals to a front; `experiments/bill.py` says what each rule wins."""


def _told(draft: Draft) -> str:
    """A part of the reason that tells which better formulas left the front; empty if none did, or it is exact."""
    if not draft.front or draft.front[-1].loss <= draft.end.enough:
        return ""
    lost = {
        why: [model for model in some if draft.nats(draft.front[-1], model) > TIED]
        for why, some in draft.dropped.items()
    }
    parts = [f"{len(models)} {why}" for why, models in lost.items() if models]
    best = max((model.r2 for models in lost.values() for model in models), default=math.nan)
    return f"; left out, though of less loss (R2 up to {best:.3g}): {', '.join(parts)}" if parts else ""


def surprise(model: Model, evidence: Evidence, described: DescriptionLength | None = None) -> float:
    """The loss that a formula without constants would have, if it were as likely.

    With a description, no constant costs more than the precision that the rows determine.
    """
    if model.tree.size == 1:
        return model.loss  # of constants, the best stays: all others are compared with it
    most = math.inf if described is None else described.of_constant(model.loss)
    return evidence.worsened(model.loss, written_length(model.tree, most))


def _constant(dataset: Dataset, loss: Loss) -> float:
    """The best constant, without digits that change the loss by less than `TOLERANCE`."""
    if not loss.kind.follows_from_moments and loss.name != "mae":
        # Significant digits of the best constant under a loss that has no other hint; the fit that follows refines it.
        return rounded(best_constant(dataset, loss), 6)
    deviation = math.sqrt(dataset.target_square / dataset.weight)
    return rounded_to(dataset.target_mean, deviation * math.sqrt(TOLERANCE))


def _completed(individuals: Population, forms: Scores, dataset: Dataset, loss: Loss, threads: int) -> Iterator[Tree]:
    """The individuals with lines of the given forms, fitted to all rows.

    Lines of absolute errors stay as they are: the fit that follows moves them, and least squares would follow outliers.
    """
    if not len(individuals):
        return
    slopes, intercepts = forms.slopes, forms.intercepts
    if loss.kind.follows_from_moments and ((slopes != 1).any() or (intercepts != 0).any()):
        products = MachineEvaluator(dataset, "mse", False, "float64", threads).products(individuals)
        with np.errstate(all="ignore"):
            slopes, intercepts = lines_like(forms, products, target_of(dataset, "float64"))
    for index, (slope, intercept) in enumerate(zip(slopes.tolist(), intercepts.tolist(), strict=True)):
        if math.isfinite(slope) and math.isfinite(intercept):
            yield with_line(individuals.tree(index), slope, intercept)


def _check_losses(models: Sequence[Sequence[Model]], loss: Loss) -> None:
    """Raise a `DataError` if a loss of a user's is negative for a formula; its values on the rows did not show it."""
    worst = min((model for version in models for model in version), key=lambda model: model.loss)
    if worst.loss < -TOLERANCE:
        raise DataError(
            f"the loss {loss.name} is negative, {worst.loss:g} for the formula {value_text(worst.expression)}; errors "
            "must be at least 0: subtract the error of a perfect prediction"
        )


def measured(
    trees: Sequence[Tree],
    dataset: Dataset,
    loss: Loss,
    weights: Mapping[str, float],
    primitives: PrimitiveSet,
    threads: int,
    rules: Callable[[PrimitiveSet], CompiledConstraints] | None = None,
) -> list[Model]:
    """The formulas as models (see `Refinement` for the parameters); one that breaks a constraint has the loss inf."""
    population = population_of(trees, primitives)
    losses, r2 = losses_and_r2(population, dataset, loss, threads)
    if rules is not None:
        losses = rules(population.primitives).charged(population, losses, np.ones(len(trees)))
    return [Model(*measures, weights) for measures in zip(trees, losses.tolist(), r2.tolist(), strict=True)]
