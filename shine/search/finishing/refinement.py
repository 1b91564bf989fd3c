"""From the individuals of a finished search to its models: complete, polished, short."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Mask
from shine.compiler.arrays import COMPILED
from shine.compiler.tapes import Subtrees, constant_counts
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.losses.form import Loss
from shine.evaluate.scores import Scores, lines_like
from shine.evaluate.tiers.machine_tier import MachineEvaluator, losses_and_r2
from shine.evaluate.tiers.rows import target_of
from shine.lang.forms.facts import FACTS
from shine.lang.forms.names import value_text
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.numerals import rounded, rounded_to
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description import DescriptionLength
from shine.search.evolution.complexity import weighed
from shine.search.evolution.evolution import Outcome
from shine.search.finishing.few_rows import FewRows
from shine.search.finishing.poles import (
    form_of,
    individuals_to_refine,
    prospects,
    without_poles,
)
from shine.search.finishing.polishing import Polishing, oddities_of, population_of, preferred
from shine.search.finishing.shorter import shortened, tidied, with_short_numbers
from shine.search.models.certainty import fitted_constants, lengths_of, written_length
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.problem.reference_losses import Evidence, best_constant, description_length, rounding_error
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions, with_line

TIED = 3.0
"""Nats by which an individual may describe the data worse than the front and still be refined: fitting to convergence
may change the order."""

NEAR, MOST_BESIDE, MOST_ROWS = 4.6, 12, 1000
"""Formulas beside the front: the nats by which their description is longer than the best at most, odds of 100; their
number at most; and the rows from which they are not kept: so many rows hardly leave ties."""

TOLERANCE = 1e-13
"""Relative gain below which constants count as fitted to convergence."""


CONSTANT_DIGITS = 6
"""Significant digits of the best constant under a loss that has no other hint; the fit that follows refines it."""

Refined = tuple[tuple[Model, ...], tuple[Model, ...], str]
"""The front, what is beside it, and what the reason tells of better formulas that were left out."""

PERIODS = {name: facts.period for name, facts in FACTS.items() if facts.period is not None}
"""Period of each periodic function."""


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
    """

    loss: Loss
    weights: Mapping[str, float]
    allows: Callable[[int, bool], bool]
    enough: float
    threads: int
    rules: Callable[[PrimitiveSet], CompiledConstraints] | None
    out_of_time: Callable[[], bool]
    most: float

    def front(self, outcome: Outcome, dataset: Dataset, polish: bool) -> Refined:
        """The Pareto front of a finished search, and the formulas beside it (see `Front`), which may be the law, too.

        Linear scaling is written into the formulas. Those with as many constants as rows are left out: they fit
        anything. The others are simplified, their constants are fitted to convergence, and simple numbers replace
        constants where the loss does not suffer. A formula stays as it was if this makes it worse.

        Parameters
        ----------
        outcome : Outcome
        dataset : Dataset
            All rows.
        polish : bool
            Whether to fit constants and make them simple: this takes nearly all of the time.
        """
        loss, threads, rules, enough = self.loss, self.threads, self.rules, self.enough
        primitives = with_functions(outcome.front.primitives, LINE_FUNCTIONS)
        domain = Domain(dataset)
        evidence = Evidence.of(dataset, loss)
        tied = evidence.tied(outcome.scores.losses, TIED)
        described = description_length(dataset, loss)
        individuals, forms = individuals_to_refine(outcome, domain, tied, self.most, described)
        constant = Tree(dataset.features, ast.Constant(_constant(dataset, loss)))
        complete = _completed(individuals, forms, dataset, loss, threads)
        found = [constant, *(tree for tree in complete if fitted_constants(tree) < max(dataset.effective_rows, 2))]
        simpler = partial(simplify, primitives=primitives, functions=COMPILED, ranges=dataset.ranges)
        trees = list(map(simpler, found))

        def measure(trees: Iterable[Tree]) -> list[Model]:
            return measured(list(trees), dataset, loss, self.weights, primitives, threads, rules)

        def nats(worse: Model, better: Model) -> float:
            return evidence.nats(worse.loss, better.loss)

        behind: list[Model] = []
        if polish:
            polishing = Polishing(loss, threads, TOLERANCE, self.out_of_time, partial(rounding_error, loss=loss))
            reduced = reduced_phases(population_of(trees, primitives))
            fitted = polishing.fitted(reduced, dataset)
            if rules is None:
                plain = polishing.plain(fitted, dataset)
                may_win, shown = self._prospects([fitted, plain], trees, domain, described)
                # Only a constant that vanishes or changes its sign makes a simple formula simpler.
                same = (np.sign(plain.values) == np.sign(reduced.values)).all(axis=1)
                left = [
                    plain.tree(at) if same[at] else simpler(plain.tree(at)) for at in np.flatnonzero(shown).tolist()
                ]
                each = zip(*map(measure, (compress(trees, shown), left)), strict=True)
                behind = [preferred(models, nats) for models in each]
                trees, fitted = list(compress(trees, may_win)), fitted.take(np.flatnonzero(may_win))
            versions = [trees, *polishing.versions(fitted, primitives, dataset)]
        else:
            # Skip forms with functions that the search did not use: these would have to be compiled first.
            known = primitives.table.keys()
            versions = [[s if functions_of(s) <= known else tree for s, tree in zip(trees, found, strict=True)]]
        if rules is not None:
            versions.insert(0, found)  # a simplified formula may break a constraint
        models = [measure(version) for version in versions]

        # The constant formula comes first. Its best version stays, not its simplest: all others are compared with it.
        _check_losses(models, loss)
        least = min(version[0].loss for version in models)
        constant_model = next(version[0] for version in models if version[0].loss <= least + TOLERANCE * abs(least))
        versions_of_each = zip(*(version[1:] for version in models), strict=True)
        chosen = [constant_model, *map(partial(preferred, nats=nats), versions_of_each)]
        # With simple constants, many formulas are the same.
        chosen = tidied(list({model.tree: model for model in chosen}.values()), dataset, primitives, rules)
        exact = shortened(chosen, enough, dataset, outcome.front.primitives, self.out_of_time)
        shorter = [*(model.tree for model in exact), *with_short_numbers(chosen, enough, dataset.ranges)]
        if shorter:
            chosen += measure(shorter)
        # Individuals have at most this size; with their lines they may be larger.
        finite, behind = (
            [each for each in some if math.isfinite(each.loss) and self.allows(each.tree.size, each.loss <= enough)]
            for some in (chosen, behind)
        )
        kept = without_poles(finite, enough, domain, behind)
        lost = [model for model in finite if model not in kept]
        # Where formulas that may win have earned their poles, those behind them have, too.
        earned = not all(domain.defines(model.tree) for model in kept)
        kept += [model for model in behind if earned or domain.defines(model.tree)]
        odd = dict(zip(kept, oddities_of([model.tree for model in kept], primitives), strict=True))

        def plainest(models: Sequence[Model]) -> list[Model]:
            # Versions of one form compete by their digits; forms by what the rows determine, as in the choice.
            versions: dict[object, list[Model]] = {}
            for model in models:
                versions.setdefault(form_of(model.tree), []).append(model)
            return [min(each, key=lambda model: surprise(model, odd[model], evidence)) for each in versions.values()]

        def front_of(models: Sequence[Model]) -> tuple[Model, ...]:
            return pareto_front(
                plainest(models), enough, lambda model: surprise(model, odd[model], evidence, described)
            )

        front = FewRows(domain, primitives, threads).front(kept, [*finite, *behind], front_of)
        if not front or front[-1].loss <= enough:
            return front, (), ""

        owing = [model for model in front_of(kept) if model not in front]
        left_out = _told(
            {
                why: [model for model in some if nats(front[-1], model) > TIED]
                for why, some in (("with a pole", lost), ("owing a pole or a needle to a few rows", owing))
            }
        )
        if dataset.n_rows > MOST_ROWS:
            return front, (), left_out
        own = {form_of(model.tree) for model in front}
        others = [model for model in plainest(kept) if form_of(model.tree) not in own]
        every = [*front, *others]
        lengths = lengths_of(every, described, [odd[model] for model in every])
        near = [at for at in np.argsort(lengths, kind="stable").tolist() if lengths[at] <= lengths.min() + NEAR]
        beside = [every[at] for at in near if at >= len(front) and domain.is_steady(every[at].tree)]
        return front, tuple(beside[:MOST_BESIDE]), left_out

    def _prospects(
        self, versions: Sequence[Population], trees: Sequence[Tree], domain: Domain, described: DescriptionLength
    ) -> tuple[Mask, Mask]:
        """Which formulas may be chosen, the constant one first, and which others the front may show.

        The versions have fitted constants, the second without those that the rows hardly determine.
        """
        idle = ((versions[1].values == 0) & (versions[0].values != 0)).sum(axis=1)
        constants, sizes = constant_counts(versions[0]), versions[0].sizes
        evaluator = MachineEvaluator(domain.dataset, self.loss, False, "float64", self.threads)
        losses = [np.maximum(evaluator.score(version).losses, self.enough) for version in versions]
        # A constant that becomes 0 takes a function with it.
        fewer = described.final(losses[1], sizes - 2 * idle, constants - idle)
        lengths = np.minimum(described.final(losses[0], sizes, constants), fewer)

        def is_sound(place: int) -> bool:
            tree = trees[place]
            return self.allows(tree.size, False) and domain.defines(tree) and domain.is_steady(tree)

        may_win, shown = prospects(lengths, weighed(versions[0], self.weights) - 2 * idle, is_sound)
        may_win[0], shown[0] = True, False
        # Of individuals that converge to the same formula, one is enough.
        kinds = [(form_of(tree), f"{loss:.8e}") for tree, loss in zip(trees, losses[0].tolist(), strict=True)]
        places = {kind: at for at, kind in reversed([*enumerate(kinds)])}
        first = np.array([places[kind] == at for at, kind in enumerate(kinds)])
        return may_win & first, shown & first


def _told(lost: Mapping[str, Sequence[Model]]) -> str:
    """A part of the reason that tells which better formulas left the front; empty if none did."""
    parts = [f"{len(models)} {why}" for why, models in lost.items() if models]
    best = max((model.r2 for models in lost.values() for model in models), default=math.nan)
    return f"; left out, though of less loss (R2 up to {best:.3g}): {', '.join(parts)}" if parts else ""


def surprise(model: Model, oddity: float, evidence: Evidence, described: DescriptionLength | None = None) -> float:
    """The loss that a plain formula without constants would have, if it were as likely.

    With a description, no constant costs more than the precision that the rows determine.
    """
    if model.tree.size == 1:
        return model.loss  # of constants, the best stays: all others are compared with it
    most = math.inf if described is None else described.of_constant(model.loss)
    return evidence.worsened(model.loss, oddity + written_length(model.tree, most))


def _constant(dataset: Dataset, loss: Loss) -> float:
    """The best constant, without digits that change the loss by less than `TOLERANCE`."""
    if not loss.kind.follows_from_moments and loss.name != "mae":
        return rounded(best_constant(dataset, loss), CONSTANT_DIGITS)
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


def reduced_phases(population: Population) -> Population:
    """The individuals, with every constant added inside a periodic function reduced to within half a period of 0.

    Values change by rounding only. The individuals are processed one by one: fronts are small.
    """
    codes, values = population.codes, population.values.copy()
    known = population.primitives.function_codes
    periods = {known[name]: period for name, period in PERIODS.items() if name in known}
    sums = {known[name] for name in ("add", "sub") if name in known}
    sizes = Subtrees.of(population).sizes
    for individual, size in enumerate(population.sizes.tolist()):
        for position in range(size):
            period = periods.get(int(codes[individual, position]))
            if period is None:
                continue
            terms = [position - 1]
            while terms:
                term = terms.pop()
                if codes[individual, term] in sums:
                    terms += [term - 1, term - 1 - int(sizes[individual, term - 1])]
                elif codes[individual, term] == CONSTANT:
                    values[individual, term] = math.remainder(values[individual, term], period)
    return replace(population, values=values)
