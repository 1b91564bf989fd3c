"""Seeding: enumerate, search through invariants, complete, validate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt

from shine.arrays import dot
from shine.gp.seeding.exploration import Exploration
from shine.gp.seeding.pool import Pool, Predict
from shine.gp.seeding.proposals import Rows
from shine.gp.seeding.relevance import relevant
from shine.gp.seeding.symmetries import Coordinates, systems
from shine.gp.seeding.writing import Nodes, Writer, constant, tape
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.typing import Floats, Indices, Mask

FEWEST_HELD_OUT = 12
"""Rows below which none are held out: too few to judge by."""

TRAINING_SHARE = 0.6
"""Share of the rows that constants are fitted on."""

DOUBTS = (0.01, 0.06)
"""How far a gradient may be from a symmetry, as shares of it squared: first what is likely one, then what may be."""


@dataclass(frozen=True)
class SeedingSettings:
    """Limits of the seeding: together with the rows they bound its time and memory."""

    members: Annotated[int, Ge(10)] = 30_000
    """Most members of a bank; each takes some 2 KiB."""
    rows: Annotated[int, Ge(1)] = 160
    """Rows that members are evaluated on."""
    features: Annotated[int, Ge(1)] = 12
    """Most features that are combined; the most relevant are chosen from more."""
    coordinates: Annotated[int, Ge(0)] = 6
    """Most systems of merged coordinates that get a bank besides the features."""
    candidates: Annotated[int, Ge(1)] = 200
    """Most formulas returned."""
    parts: Annotated[int, Ge(0)] = 300
    """Most building blocks returned."""
    price: Annotated[float, Gt(0)] = 0.02
    """What a node costs: candidates are ordered by the logarithm of their error plus this a node."""


@dataclass(frozen=True, eq=False)
class Seeds:
    """What the seeding found.

    Parameters
    ----------
    candidates : Population
        Complete formulas with their constants, best first; among them the best of each size and of each search.
    left : ndarray of shape (n_candidates,)
        Share of the target's variance that each leaves on rows that had no part in finding it.
    kinds : tuple of str
        The search that found each.
    parts : Population
        Building blocks: members that come closest to a view of the target, and what the best candidates are made of.
    scores : ndarray of shape (n_parts,)
        Share of variance that each part, or the best candidate made of it, explains; descending.
    exact : bool
        Whether a candidate fits to within rounding.
    interrupted : bool
        Whether a KeyboardInterrupt ended the seeding: this is what was found until then.
    failures : tuple of str
        Searches that failed and were skipped; none should.
    """

    candidates: Population
    left: Floats
    kinds: tuple[str, ...]
    parts: Population
    scores: Floats
    exact: bool
    interrupted: bool = False
    failures: tuple[str, ...] = ()


@np.errstate(all="ignore")
def seed(
    columns: Floats,
    target: Floats,
    weights: Floats | None,
    primitives: PrimitiveSet,
    predict: Predict,
    rng: np.random.Generator,
    *,
    max_size: int = 30,
    max_depth: int = 10,
    linear_scaling: bool = True,
    settings: SeedingSettings | None = None,
    clock: Callable[[], float] = time.monotonic,
    deadline: float = float("inf"),
) -> Seeds:
    """Formulas to start from, found through what of a target can be solved for in closed form.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows), float64
        A sample of the data; some hundred to a few thousand rows.
    target : ndarray of shape (n_rows,), float64
    weights : ndarray of shape (n_rows,), float64, optional
        Not negative, one positive.
    primitives : PrimitiveSet
        What formulas are made of; nothing else appears in them.
    predict : callable
        Predictions of a population of these primitives on these rows, shape (n_individuals, n_rows).
    rng : numpy.random.Generator
        Decides the outcome entirely, unless the deadline ends it.
    max_size, max_depth : int
        Most nodes and levels of a candidate.
    linear_scaling : bool
        Whether formulas will be judged with their best slope and intercept. Candidates then lack theirs.
    settings : SeedingSettings, optional
    clock : callable
        Seconds from any origin.
    deadline : float
        On that clock; what was found until then is returned. The step that is under way is finished, which takes up to
        a second with a large bank.

    Returns
    -------
    Seeds

    Notes
    -----
    Ends early once a candidate fits to within rounding, and at a KeyboardInterrupt, with what was found until then.
    docs/seeding.md describes the method.
    """
    settings = settings or SeedingSettings()
    given = np.ones(len(target)) if weights is None else np.asarray(weights, np.float64)
    counted = np.flatnonzero(given > 0)
    rows = Rows(columns[:, counted], target[counted], given[counted] / given[counted].sum())
    writer = Writer(primitives)
    training, held_out, screened = _split(len(counted), settings.rows, rng)
    pool = Pool(
        rows,
        training,
        held_out,
        writer,
        lambda population: np.asarray(predict(population), np.float64)[:, counted],
        max_size,
        max_depth,
        linear_scaling,
        settings.price,
    )
    parts: dict[Nodes, float] = {}
    interrupted = False
    try:
        chosen = relevant(rows.columns, rows.target, rows.weights, settings.features)
        # A target that varies only by rounding, or on a few rows only, has nothing to correlate with.
        parts_of = (screened, training, held_out)
        if all(_varies(rows.target[which], rows.weights[which]) for which in parts_of) and len(chosen):
            features = Coordinates.of_features(rows.columns, chosen)
            reduced: list[Coordinates] = []
            with pool.surviving("symmetries"):
                reduced = systems(features, rows.target, rows.weights, writer, DOUBTS)[: settings.coordinates]
            exploration = Exploration(pool, screened, chosen, settings.members, rng, lambda: clock() >= deadline)
            parts = exploration.explore([features, *reduced])
    except KeyboardInterrupt:
        interrupted = True
    if not pool.left:
        pool.left[constant(float(dot(rows.target, rows.weights)))] = 1.0 if _varies(rows.target, rows.weights) else 0.0
        pool.kinds[next(iter(pool.left))] = "constant"
    population, left, kinds = pool.chosen(settings.candidates)
    blocks, scores = _parts(pool, parts, settings.parts, max_size)
    return Seeds(population, left, kinds, blocks, scores, pool.exact, interrupted, tuple(pool.failures))


def _split(rows: int, screened: int, rng: np.random.Generator) -> tuple[Mask, Mask, Indices]:
    """Rows to fit constants on, rows to judge by, and the rows of the former that banks are evaluated on."""
    order = rng.permutation(rows)
    count = int(TRAINING_SHARE * rows)
    training = np.ones(rows, bool)
    if rows - count >= FEWEST_HELD_OUT:
        training[order[count:]] = False
    held_out = ~training if not training.all() else training
    return training, held_out, np.sort(order[training[order]][:screened])


def _varies(values: Floats, weights: Floats) -> bool:
    """Whether values vary by more than rounding, on rows that weigh something."""
    total = float(weights.sum())
    if len(values) <= 2 or not total > 0:
        return False
    centered = values - float(dot(values, weights)) / total
    return bool(np.sqrt(dot(centered**2, weights) / total) > 1e-12 * np.abs(values).max())


def _parts(pool: Pool, members: dict[Nodes, float], most: int, max_size: int) -> tuple[Population, Floats]:
    """Building blocks with their scores, the best first; of equally good ones, the smaller."""
    scores = dict(members)
    for nodes, left in pool.best_ingredients(20).items():
        scores[nodes] = max(scores.get(nodes, 0.0), 1 - left)
    order = sorted(
        (nodes for nodes in scores if len(nodes) <= max_size), key=lambda nodes: (-scores[nodes], len(nodes), nodes)
    )[:most]
    population = Population.from_tapes([tape(nodes) for nodes in order], pool.writer.primitives, max_size)
    return population, np.array([scores[nodes] for nodes in order])
