"""Equations of the states joined to systems: the most likely combinations first.

What leaves one state often enters another, and laws often differ by an exchange of states alone. Noise hides a term in
one rate and shows it in another: so sums of the terms of all candidates are candidates for each rate, by regression.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import apply, dot, solved
from shine.data.datasets.dataset import stable_sum
from shine.lang.forms.interpretation import computed
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.search.dynamics.readings import Readings
from shine.search.dynamics.rows import EXACT, RateRows, settled
from shine.search.dynamics.summands import NoSum, Product, exchanged, exchanges, summands, written
from shine.search.models.certainty import lengths_of
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.problem.reference_losses import description_length, rounding_loss

SOURCES, WORSE = 6, 12.0
"""Most candidates of a state whose terms are used, and the nats by which they may be worse than the best."""

MOST_FACTORS, MOST_TERMS = 14, 4
"""Most different terms that are tried for a state, and most terms of a sum."""

RIDGE = 1e-10
"""Added to the correlations of terms: dependent ones share their weight."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A formula for the rate of a state, or for those of several.

    Parameters
    ----------
    model : Model
    nats : float
        Length of the description of the rates by it, beyond that by the best of its front; negative if terms of other
        states make it shorter.
    """

    model: Model
    nats: float


def candidates_of(front: Front, rows: RateRows | None) -> list[Candidate]:
    """The formulas of a front, the shortest description first, but the recommended one before all others.

    Known equations have no rows.
    """
    if rows is None:
        return [Candidate(model, 0.0) for model in front]
    lengths = _lengths(front.models, rows)
    least = float(np.min(lengths))
    nats = [float(length) - least for length in lengths.tolist()]
    nats[front.best_index] = 0.0
    found = [Candidate(model, own) for model, own in zip(front.models, nats, strict=True) if np.isfinite(own)]
    return sorted(found, key=lambda each: (each.nats, each.model is not front.best, each.model.complexity))


def best_first(candidates: Sequence[Sequence[Candidate]]) -> Iterator[tuple[Candidate, ...]]:
    """Combinations of one candidate a state, by rising sum of their nats; each list is sorted by them."""
    if not all(candidates):
        return
    first = (0,) * len(candidates)
    waiting, seen = [(sum(own[0].nats for own in candidates), first)], {first}
    while waiting:
        _, places = heapq.heappop(waiting)
        yield tuple(own[place] for own, place in zip(candidates, places, strict=True))
        for state, own in enumerate(candidates):
            if places[state] + 1 == len(own):
                continue
            following = (*places[:state], places[state] + 1, *places[state + 1 :])
            if following not in seen:
                seen.add(following)
                nats = sum(each[place].nats for each, place in zip(candidates, following, strict=True))
                heapq.heappush(waiting, (nats, following))


def with_integrals(
    candidates: Sequence[Sequence[Candidate]],
    rows: Sequence[RateRows | None],
    states: Sequence[str],
    readings: Readings,
) -> list[list[Candidate]]:
    """The candidates of each state, before them the states whose integral it follows within its readings' errors."""
    found = [list(own) for own in candidates]
    for at, rate in readings.integrals:
        given = rows[at]
        if given is not None and states[rate] in given.dataset.features:
            tree = parse(states[rate], given.dataset.features)
            found[at] = [
                Candidate(model_of(tree, given), 0.0),
                *(each for each in found[at] if each.model.tree != tree),
            ]
    return found


def with_terms_of_others(
    candidates: Sequence[Sequence[Candidate]], rows: Sequence[RateRows | None], states: Sequence[str], most: int
) -> list[list[Candidate]]:
    """The candidates of each state and those of the terms of others, by rising nats.

    Of a clean rate, the shortest sum that explains it is one, if no candidate does.

    Parameters
    ----------
    candidates : sequence of sequence of Candidate
        By state.
    rows : sequence of RateRows or None
        None for a state whose equation is known, which takes no part.
    states : sequence of str
        Their names.
    most : int
        Largest size of a formula.
    """
    sums = [sums_of(own) if each else [] for own, each in zip(candidates, rows, strict=True)]
    sought, found = [place for place, given in enumerate(rows) if given is not None], []
    for at, (own, given) in enumerate(zip(candidates, rows, strict=True)):
        if given is not None and own and not _explains(own[0].model, given):
            known = {_form(each.model) for each in own}
            every = (
                shortest_sums(at, candidates, rows, states) if given.clean else _new(at, sums, given, states, sought)
            )
            new = [each for each in every if each.tree.size <= most]
            own = [*own, *_described([each for each in new if _form(each) not in known], own, given)]
        found.append(sorted(own, key=lambda each: each.nats))
    return found


def alike(
    candidates: Sequence[Sequence[Candidate]], rows: Sequence[RateRows | None], states: Sequence[str], most: int
) -> list[tuple[Candidate, ...]]:
    """Systems that an exchange of states leaves as they are, the most likely ones first.

    Parameters
    ----------
    candidates, rows, states
        As of `with_terms_of_others`, before it.
    most : int
        Most systems.
    """
    sought = [place for place, own in enumerate(rows) if own is not None]
    found: dict[tuple[str, ...], tuple[Candidate, ...]] = {}
    known_images: dict[tuple[int, str], Candidate] = {}
    if all(candidates):
        for order, images in exchanges(states, len(sought)):
            to = dict(zip(sought, (sought[image] for image in order), strict=True))
            for rank in range(3):  # most candidates of a state that are tried as the law of others
                for shift in range(len(sought)):
                    models = [own[0] for own in candidates]
                    _copy_along(models, candidates, rows, (to, images), (rank, shift), known_images)
                    found.setdefault(tuple(str(each.model.tree) for each in models), tuple(models))
    known = {tuple(str(own[0].model.tree) for own in candidates)}
    new = [models for texts, models in found.items() if texts not in known]
    return sorted(new, key=lambda models: sum(each.nats for each in models))[:most]


def _copy_along(
    models: list[Candidate],
    candidates: Sequence[Sequence[Candidate]],
    rows: Sequence[RateRows | None],
    exchange: tuple[Mapping[int, int], Mapping[str, str]],
    choice: tuple[int, int],
    known: dict[tuple[int, str], Candidate],
) -> None:
    """Replace the equations of exchanged states by images of one of each cycle: the candidate of a rank, of the member
    at the place of a shift. Images are kept by place and text."""
    (to, images), (rank, shift) = exchange, choice
    seen = set[int]()
    for start in to:
        cycle = [start]
        while to[cycle[-1]] != start:
            cycle.append(to[cycle[-1]])
        if start in seen or len(cycle) == 1:
            continue
        seen.update(cycle)
        first = shift % len(cycle)
        cycle = [*cycle[first:], *cycle[:first]]
        own = candidates[cycle[0]]
        models[cycle[0]] = own[min(rank, len(own) - 1)]
        for before, place in pairwise(cycle):
            given = rows[place]
            assert given is not None
            try:
                products = [exchanged(each, images) for each in summands(models[before].model.tree)]
            except NoSum:
                return
            key = place, written(products)
            if key not in known:
                known[key] = candidate_of(products, candidates[place], given)
            models[place] = known[key]


def candidate_of(products: Sequence[Product], known: Sequence[Candidate], rows: RateRows) -> Candidate:
    """A sum beside the candidates of a state."""
    model = model_of(parse(written(products), rows.dataset.features), rows)
    return next(iter(_described([model], known, rows)), Candidate(model, math.inf))


def model_of(tree: Tree, rows: RateRows) -> Model:
    """A formula with its loss for the rates."""
    errors = values_of(tree, rows.dataset.columns) - rows.dataset.target
    return Model(tree, float(stable_sum(rows.dataset.row_weights * errors**2)) / rows.dataset.weight, 0.0)


def sums_of(candidates: Sequence[Candidate]) -> list[list[Product]]:
    """The best candidates as sums."""
    found = []
    for each in candidates[:SOURCES]:
        try:
            if each.nats <= WORSE:
                found.append(summands(each.model.tree))
        except NoSum:
            continue
    return found


def _new(
    at: int, sums: Sequence[Sequence[list[Product]]], rows: RateRows, states: Sequence[str], sought: Sequence[int]
) -> list[Model]:
    """Formulas for the rate of a state, from terms of all."""
    ordered = [sums[at], *(own for place, own in enumerate(sums) if place != at)]
    chosen = list(_Regression(_factors([each for own in ordered for each in own])[:MOST_FACTORS], rows).best())
    for image in _images(at, sums, states, sought):
        alone = _Regression(image, rows)
        chosen.append(alone.sum(range(len(alone.products))))
    return list({str(model.tree): model for model in chosen if model is not None}.values())


def _images(
    at: int, sums: Sequence[Sequence[Sequence[Product]]], states: Sequence[str], sought: Sequence[int]
) -> list[tuple[Product, ...]]:
    """Sums of other states with the names that an exchange which leads to a state gives them."""
    images = {
        tuple(exchanged(product, names) for product in products)
        for order, names in exchanges(states, len(sought))
        for place, to in zip(sought, order, strict=False)
        if place != at and sought[to] == at
        for products in sums[place]
    }
    return sorted(images, key=written)


def values_of(tree: Tree, columns: Floats) -> Floats:
    """Values of a formula, without code of its own, which takes longer to make than to run."""
    known = {**STANDARD, **tree.functions}
    inputs = dict(zip(tree.parameters, columns, strict=True))
    found: Floats = computed(
        tree, inputs, lambda value: np.full(len(columns[0]), value), lambda name, *given: apply(known[name], *given)
    )
    return found


def _form(model: Model) -> tuple[tuple[str, bool], ...] | None:
    """What two formulas have in common that differ in the values of their constants."""
    try:
        return tuple(sorted((each.shape, abs(each.coefficient) != 1) for each in summands(model.tree)))
    except NoSum:
        return None


def shortest_sums(
    at: int, candidates: Sequence[Sequence[Candidate]], rows: Sequence[RateRows | None], states: Sequence[str]
) -> list[Model]:
    """The shortest sums that explain the clean rate of a state: of monomials, and of terms of what explains others, as
    they are or with states exchanged."""
    own, sought = rows[at], [place for place, given in enumerate(rows) if given is not None]
    assert own is not None
    sums = [
        sums_of(each[:1]) if given is not None and place != at and each and _explains(each[0].model, given) else []
        for place, (each, given) in enumerate(zip(candidates, rows, strict=True))
    ]
    monomials = list(_monomials(own.dataset.features))
    # Most terms all fours of which are tried
    pools = [_factors([*(each for known in sums for each in known), monomials])[:28]]
    linear = monomials[: len(own.dataset.features) + 1]
    pools += [_factors([image, linear]) for image in _images(at, sums, states, sought)]
    found = [model for pool in pools for model in _Regression(pool, own).best()]
    return [model for model in found if model is not None and _explains(model, own)]


def _factors(sums: Sequence[Sequence[Product]]) -> list[Product]:
    """The different terms of some sums, without their coefficients."""
    return [Product(1.0, powers) for powers in dict.fromkeys(each.powers for own in sums for each in own)]


def _explains(model: Model, rows: RateRows) -> bool:
    """Whether a formula leaves no more of a clean rate than its errors."""
    return rows.clean and model.loss <= max(rows.enough, EXACT) * rows.dataset.target_square / rows.dataset.weight


def _monomials(names: Sequence[str]) -> Iterator[Product]:
    """The monomials of the highest degree of which there are not too many, and of lower ones."""
    for degree in range(5):
        # Most monomials of a degree beyond the second, and of lower ones
        if degree <= 2 or math.comb(len(names) + degree, degree) <= 21:
            for own in combinations_with_replacement(names, degree):
                yield Product.of(1.0, {name: float(own.count(name)) for name in own})


class _Regression:
    """Sums of some products fitted to the rate of a state."""

    def __init__(self, products: Sequence[Product], rows: RateRows) -> None:
        self.rows, dataset = rows, rows.dataset
        self.features = dataset.features
        root = np.sqrt(dataset.row_weights)
        trees = [parse(product.text or "1.0", self.features) for product in products]
        columns = [root * values_of(tree, dataset.columns) for tree in trees]
        usable = [place for place, own in enumerate(columns) if np.isfinite(own).all() and own.any()]
        self.products = [products[place] for place in usable]
        # With a coefficient and a sign.
        self.nodes = np.array([trees[place].size + 3 for place in usable])
        self.sizes = np.array([np.sqrt(float(stable_sum(columns[place] ** 2))) for place in usable])
        self.columns = np.array([columns[place] for place in usable]).reshape(-1, len(root)) / self.sizes[:, None]
        self.target = root * dataset.target
        products_of = [dot(self.columns, own[None]) for own in self.columns]
        self.products_of = np.array(products_of).reshape(len(usable), len(usable))
        self.along = dot(self.columns, self.target[None])

    def best(self) -> Iterator[Model | None]:
        """The sums with the shortest descriptions."""
        description, square = description_length(settled(self.rows), "mse"), float(stable_sum(self.target**2))
        lengths, chosen = [np.zeros(0)], list[list[int]]()
        for count in range(1, min(MOST_TERMS, len(self.products)) + 1):
            places = np.array(list(combinations(range(len(self.products)), count)))
            matrix = self.products_of[places[:, :, None], places[:, None, :]]
            right = self.along[places]
            shares = _shares(matrix, right)
            rest = square - np.add.reduce(shares * (2 * right - dot(matrix, shares[:, None])), axis=1)
            # Exact sums differ by their sizes alone.
            losses = np.maximum(rest, EXACT * square) / self.rows.dataset.weight
            sizes = np.add.reduce(self.nodes[places], axis=1)
            lengths.append(description.final(losses, sizes, np.full(len(places), count)))
            chosen += places.tolist()
        for place in np.argsort(np.concatenate(lengths), kind="stable")[:8].tolist():  # most new candidates of a state
            yield self.sum(chosen[place])

    def sum(self, places: Sequence[int]) -> Model | None:
        """A sum as a formula; None if there is none."""
        own = np.array(places, np.int64)
        if not len(own):
            return None
        shares = _shares(self.products_of[own[:, None], own], self.along[own])
        rest = self.target - np.add.reduce(shares[:, None] * self.columns[own])
        loss = float(stable_sum(rest**2)) / self.rows.dataset.weight
        values = (shares / self.sizes[own]).tolist()
        if not np.isfinite(loss) or not all(values):
            return None
        pairs = zip(values, own.tolist(), strict=True)
        products = [Product(value, self.products[place].powers) for value, place in pairs]
        spread = self.rows.dataset.target_square / self.rows.dataset.weight
        tree = parse(written(products), self.features)
        return Model(tree, loss, 1 - loss / spread if spread > 0 else 0.0)


def _shares(matrix: Floats, right: Floats) -> Floats:
    """Weights of the terms of regressions, shape (..., n_terms); what the ridge has left is solved for again."""
    found = np.zeros_like(right)
    for _ in range(3):
        found = found + solved(matrix, (right - dot(matrix, found[..., None, :]))[..., None, :], RIDGE)[..., 0, :]
    return found


def _described(models: Sequence[Model], known: Sequence[Candidate], rows: RateRows) -> list[Candidate]:
    """Candidates, by the description of the rates as those of the front."""
    least = float(np.min(_lengths([each.model for each in known], rows)))
    lengths = _lengths(models, rows) if models else np.zeros(0)
    return [
        Candidate(model, float(own) - least)
        for model, own in zip(models, lengths.tolist(), strict=True)
        if np.isfinite(own)
    ]


def _lengths(models: Sequence[Model], rows: RateRows) -> Floats:
    """Nats of the description of the rates by each formula, by an exact one up to rounding."""
    least = rounding_loss(rows.dataset, "mse")
    losses = [replace(model, loss=max(model.loss, least)) for model in models]
    return lengths_of(losses, description_length(settled(rows), "mse"))
