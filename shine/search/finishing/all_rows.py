"""The front of a search on a sample of the rows, fitted to and judged on all rows, which are read block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.stages import stage
from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import AllRows, Dataset
from shine.data.streams.scanning import Moments
from shine.evaluate.domain import Domain
from shine.evaluate.inference.constants import is_simple
from shine.evaluate.inference.inference import Basis
from shine.evaluate.inference.many_rows import SAMPLED_ROWS, SumsOfForm, sums_by
from shine.evaluate.losses.form import Loss
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description import DescriptionLength
from shine.search.evolution.scoring import places
from shine.search.evolution.snapping import MOST_LOST
from shine.search.finishing.polishing import population_of, with_supported_digits
from shine.search.models.certainty import Choice, choose
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.problem.noise import FOLLOWING_THE_FORMULA, block_with_expected_noise, follows_formula, least_size
from shine.search.problem.reference_losses import Evidence, constant_loss, good_enough
from shine.search.problem.unwritten import description_of

STEPS = 5
"""Most steps of a fit to all rows: it begins at the best constants of a large sample."""

TOLERANCE = 1e-13
"""Relative gain below which constants count as fitted."""

INFERENCE_ROWS = SAMPLED_ROWS
"""Rows that tell the kind of the standard errors, what the rows do not determine, and quantiles of the noise. The sums
over all rows say the rest."""

Allowed = Callable[[Sequence[Model]], Mask]
"""Formulas -> which of them may be chosen."""


@dataclass(frozen=True, eq=False)
class FitToAllRows:
    """All rows of a search on a sample, and what judging on them needs.

    Parameters
    ----------
    all_rows : AllRows
    basis : Basis
        Rows in memory, with the weights of the noise, and its model.
    loss : Loss
    stop_loss : float
        Share of the constant's loss that is good enough.
    dtype : str
    threads : int
    primitives : PrimitiveSet
        Those of the search, for which machines are compiled.
    rules : callable or None
        Compiles the constraints for a primitive set.
    """

    all_rows: AllRows
    basis: Basis
    loss: Loss
    stop_loss: float
    dtype: str
    threads: int
    primitives: PrimitiveSet
    rules: Callable[[PrimitiveSet], CompiledConstraints] | None

    @property
    def sample(self) -> Dataset:
        """The rows in memory."""
        return self.basis.rows

    def judged(
        self, models: Sequence[Model], choice: Choice, allowed: Allowed | None
    ) -> tuple[tuple[Model, ...], Choice]:
        """The front with constants, losses and standard errors by all rows.

        The choice follows the rule of the search, with the losses on all rows; without `allowed` it stays. The models
        that lose their place on the front leave it, but never the chosen one.
        """
        all_rows = self.all_rows
        with stage(f"fitting the front to all {all_rows.n_rows} rows"):
            features = _used(models, self.sample)
            rows = self._weighted(features, models[choice.index])
            found, errors = self._fitted(models, rows, features)
            found = self._with_r2(found, errors, rows, features)
            found = self._with_uncertainty(found, rows, features)
        found = list(with_supported_digits(found, self.sample, rows=all_rows.effective_rows))
        best = found[choice.index]
        front = pareto_front(found, 0.0)
        if allowed is None and best not in front:
            front = tuple(sorted((*front, best), key=lambda model: model.complexity))
        if allowed is None:
            choice = replace(choice, index=front.index(best))
        else:
            enough = good_enough(self.sample, self.loss, self.stop_loss, self.dtype)
            choice = choose(front, enough, self._description(), allowed(front))
        return front, choice

    def _weighted(self, features: tuple[str, ...], best: Model) -> AllRows:
        """All rows with the weights of their noise, as a formula lets expect it."""
        all_rows, noise, loss = self.all_rows, self.basis.noise, self.loss
        if self.sample.deviations is None:
            return all_rows
        read = all_rows.read
        if noise in FOLLOWING_THE_FORMULA:
            least = least_size(self.sample.target)
            kernel = replace(best, tree=replace(best.tree, parameters=features)).kernel
            follows = follows_formula(self.sample, noise, best.predict(self.sample.columns.T))

            def read(names: Collection[str]) -> Iterator[Dataset]:
                for block in all_rows.read(features):
                    expected = np.broadcast_to(kernel(*block.columns), (block.n_rows,)) if follows else None
                    yield block_with_expected_noise(block, noise, expected, least, loss)

        moments = Moments()
        for block in read(features if noise in FOLLOWING_THE_FORMULA else ()):
            moments.add(block.target, block.row_weights)
        # As in memory, the weights keep their sum.
        factor = all_rows.weight / moments.weight

        def scaled(names: Collection[str]) -> Iterator[Dataset]:
            for block in read(names):
                assert block.deviations is not None
                yield replace(
                    block, weights=block.row_weights * factor, deviations=block.deviations / math.sqrt(factor)
                )

        return replace(all_rows, read=scaled, target_mean=moments.mean, target_square=moments.square * factor)

    def _fitted(self, models: Sequence[Model], rows: AllRows, features: tuple[str, ...]) -> tuple[list[Model], Floats]:
        """The shortest version of each formula that is as likely as the best, with its loss, and the sums of errors.

        As it is; with all constants fitted anew; or with those fitted that do not look like a part of the law.
        """
        start = self._population([model.tree for model in models], features)
        # Versions of the same formula whose constants are held differently; none if all are held.
        held = _simple(start)
        some = np.flatnonzero(~held.all(axis=1))
        mixed = some[held[some].any(axis=1)]
        which = np.concatenate([some, mixed])
        fixed = np.concatenate([np.zeros_like(held[some]), held[mixed]])
        linearizer = MachineLinearizer(rows, self.loss, self.threads, features)
        fit = linearizer.fit(start.take(which), STEPS, tolerance=TOLERANCE, fixed=fixed)
        # The last version is the formula as it is: of equals, it stays.
        versions = Population.concatenate([fit.population, start])
        errors = np.concatenate([fit.errors, linearizer.errors(start)])
        losses = self.loss.of_sum(errors, rows.weight, rows.target_square)
        losses = np.where(np.isfinite(losses), losses, np.inf)
        if self.rules is not None:
            losses = self.rules(versions.primitives).charged(versions, losses, np.ones(len(versions)))
        evidence = replace(Evidence.of(self.sample, self.loss), rows=self.all_rows.effective_rows)
        owners = np.concatenate([which, np.arange(len(models))])
        chosen, left, domain = [], [], Domain(self.sample)
        for at, model in enumerate(models):
            own = np.flatnonzero(owners == at)
            trees = [versions.tree(place) for place in own[:-1].tolist()]
            trees = [replace(tree, parameters=model.tree.parameters, name=model.tree.name) for tree in trees]
            pairs = zip([*trees, model.tree], losses[own].tolist(), strict=True)
            each = [replace(model, tree=tree, loss=loss, basis=None) for tree, loss in pairs]
            # With other constants, a formula may have poles.
            fine = [model for model in each if domain.defines(model.tree)] or each
            least = min(model.loss for model in fine)
            best = next((model for model in reversed(fine) if evidence.nats(model.loss, least) <= MOST_LOST), fine[-1])
            chosen.append(best)
            left.append(errors[own[next(place for place, other in enumerate(each) if other is best)]])
        return chosen, np.array(left)

    def _with_r2(
        self, models: Sequence[Model], errors: Floats, rows: AllRows, features: tuple[str, ...]
    ) -> list[Model]:
        """The models with the coefficient of determination on all rows, with the weights of the noise."""
        if self.loss.kind.follows_from_moments:
            squares = errors / rows.weight
        else:
            population = self._population([model.tree for model in models], features)
            squares = MachineLinearizer(rows, "mse", self.threads, features).errors(population) / rows.weight
        variance = rows.target_square / rows.weight
        with np.errstate(all="ignore"):
            r2 = 1 - squares / variance if variance > 0 else np.where(squares > 0, 0.0, 1.0)
        return [replace(model, r2=float(each)) for model, each in zip(models, r2, strict=True)]

    def _with_uncertainty(self, models: Sequence[Model], rows: AllRows, features: tuple[str, ...]) -> list[Model]:
        """The models with what their standard errors by all rows follow from, when they are asked for: a sample of the
        rows, and sums over all."""
        few = self.sample.sampled(INFERENCE_ROWS, np.random.default_rng(0))
        few = replace(few, known_ranges=self.all_rows.ranges, all_rows=None)
        basis = replace(self.basis, rows=few, of=self.all_rows.effective_rows)
        forms = [replace(model, basis=basis).form() for model in models]
        tapes = partial(self._population, features=features)
        everywhere = sums_by(MachineLinearizer(rows, self.loss, self.threads, features), forms, tapes)
        sample = few.without([name for name in few.features if name not in features])
        here = sums_by(MachineLinearizer(sample, self.loss, self.threads), forms, tapes)
        sums = [
            SumsOfForm(each, tuple(sorted(form.held.places)), at)
            for each, form, at in zip(everywhere, forms, here, strict=True)
        ]
        return [replace(model, basis=basis, sums=each) for model, each in zip(models, sums, strict=True)]

    def _population(self, trees: Sequence[Tree], features: tuple[str, ...]) -> Population:
        """The formulas as individuals over some features."""
        primitives = PrimitiveSet(self.primitives.functions, features)
        return population_of([replace(tree, parameters=features) for tree in trees], primitives)

    def _description(self) -> DescriptionLength:
        """The length of the description of all rows; see `reference_losses.description_length`."""
        rows, kind = self.all_rows.effective_rows, self.loss.kind
        if kind.log_likelihood is not None:
            return DescriptionLength.of_likelihood(rows, kind.log_likelihood)
        worst = constant_loss(self.sample, self.loss)
        described = DescriptionLength.with_unknown_noise(rows, self.loss.log_likelihood, worst if worst > 0 else 1.0)
        return replace(described, unwritten=description_of(self.sample, self.loss, self.primitives).unwritten)


def _used(models: Sequence[Model], sample: Dataset) -> tuple[str, ...]:
    """The features that formulas use, and one at least: only these are read."""
    used = {name for model in models for name in model.tree.used_parameters}
    return tuple(name for name in sample.features if name in used) or sample.features[:1]


def _simple(population: Population) -> Mask:
    """Constants that look like a part of the law, shape (n_individuals, most constants)."""
    rows, columns, ranks = places(population)
    simple = np.ones((len(population), int(ranks.max(initial=0)) + 1), np.bool_)
    values = population.values[rows, columns]
    simple[rows, ranks] = [is_simple(value) for value in values.tolist()]
    return simple
