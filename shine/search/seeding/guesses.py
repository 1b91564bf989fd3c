"""The stage that looks for guesses: choose features, split the rows, find symmetries, run the searches, rank."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt

from shine.base.parallel import Pool
from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import dot
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.formula_writer import Nodes, Writer, constant, tape
from shine.search.seeding.candidate_pool import CandidatePool, Finding, LinearizerOf, Predict
from shine.search.seeding.effort import Effort
from shine.search.seeding.looks import Looking
from shine.search.seeding.relevant_features import relevant_features
from shine.search.seeding.rounds import Rounds
from shine.search.seeding.screen.skeletons import Rows
from shine.search.seeding.symmetries import systems

FEWEST_HELD_OUT = 40
"""Fewest held-out rows; with fewer, constants are fitted on all rows, and formulas measured on the same: the error of a
few rows says less than they do about the constants."""

TRAINING_SHARE = 0.6
"""Share of the rows that constants are fitted on."""

DOUBTS = (0.01, 0.06)
"""Largest doubt of a likely symmetry, and of a possible one: squared distance of the gradient from it, as a share."""

LEAST_SPREAD = 1e-12
"""Standard deviation of a target, as a share of its largest value, below which it varies by rounding only."""

FEWEST_VARYING = 3
"""Rows below which a target does not count as varying: a line fits two rows exactly."""

FORMULAS_WITH_PARTS = 20
"""Best formulas whose parts are building blocks."""


@dataclass(frozen=True)
class SeedingSettings:
    """Limits of the stage. Together with the rows they bound its time and memory."""

    members: Annotated[int, Ge(10)] = 30_000
    """Most members of a bank, about 2 KiB each."""
    rows: Annotated[int, Ge(1)] = 160
    """Rows that members are evaluated on."""
    features: Annotated[int, Ge(1)] = 12
    """Most features that are combined: the most relevant ones."""
    coordinates: Annotated[int, Ge(0)] = 6
    """Most systems of merged coordinates that get a bank of their own."""
    candidates: Annotated[int, Ge(1)] = 200
    """Most formulas returned."""
    parts: Annotated[int, Ge(0)] = 300
    """Most building blocks returned."""
    price: Annotated[float, Gt(0)] = 0.02
    """Price of a node: candidates are ordered by the logarithm of their error plus this for each node."""


@dataclass(frozen=True, eq=False)
class Guesses:
    """Formulas to start from.

    Parameters
    ----------
    candidates : Population
        Complete formulas, the best first; among them the best of each size and of each kind.
    unexplained : ndarray of shape (n_candidates,)
        Share of the target's variance that each leaves unexplained on rows that had no part in finding it; with few
        rows, on all rows, with a correction for the number of constants.
    kinds : tuple of str
        The kind of each, as the search that found it names it.
    parts : Population
        Building blocks: members that come closest to a view of the target, and parts of the best candidates.
    scores : ndarray of shape (n_parts,)
        Share of variance that each part, or the best candidate with it, explains; descending.
    exact : bool
        Whether a candidate fits to within rounding.
    interrupted : bool
        Whether a KeyboardInterrupt ended the stage early.
    failures : tuple of str
        Searches that failed and were skipped; there should be none.
    """

    candidates: Population
    unexplained: Floats
    kinds: tuple[str, ...]
    parts: Population
    scores: Floats
    exact: bool
    interrupted: bool = False
    failures: tuple[str, ...] = ()


@np.errstate(all="ignore")
def find_guesses(
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
    linearizer_of: LinearizerOf | None = None,
    settings: SeedingSettings | None = None,
    clock: Callable[[], float] = time.monotonic,
    deadline: float = float("inf"),
    work: float = float("inf"),
    pool: Pool | None = None,
    found: Callable[[Finding], object] | None = None,
) -> Guesses:
    """Look for formulas to start from: small expressions, with constants solved for in closed form.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows), float64
        A sample of the data, a hundred to a few thousand rows.
    target : ndarray of shape (n_rows,), float64
    weights : ndarray of shape (n_rows,), float64, optional
        At least 0, and not all 0.
    primitives : PrimitiveSet
        Functions and features of the formulas.
    predict : callable
        Predictions of a population of these primitives on these rows, shape (n_individuals, n_rows).
    rng : numpy.random.Generator
        The same generator gives the same guesses, unless the deadline ends the stage.
    max_size, max_depth : int
        Most nodes and levels of a candidate.
    linear_scaling : bool
        Whether formulas will be judged with their best slope and intercept. Candidates then contain neither.
    linearizer_of : callable, optional
        Makes what fits constants inside functions on some rows; without it, they stay as the searches found them.
    settings : SeedingSettings, optional
    clock : callable
        Seconds from any origin.
    deadline : float
        Time on that clock at which the stage ends. The current step is finished, up to a second with a large bank.
    work : float
        Most members that searches look at, all searches together (see `shine.search.seeding.effort`): a limit that does
        not depend on the clock.
    pool : Pool, optional
        Workers that share the searches (see `shine.base.parallel.opened`). They change no bit of the guesses.
    found : callable, optional
        Called with each candidate that is better than all before, as soon as it is found.

    Returns
    -------
    Guesses

    Notes
    -----
    The stage ends early, with the guesses found so far, if a candidate fits to within rounding, and at a
    KeyboardInterrupt.
    docs/seeding.md describes the method.
    """
    settings = settings or SeedingSettings()
    given = np.ones(len(target)) if weights is None else np.asarray(weights, np.float64)
    counted = np.flatnonzero(given > 0)
    rows = Rows(columns[:, counted], target[counted], given[counted] / given[counted].sum())
    writer = Writer(primitives)
    training, held_out, screened = _split(len(counted), settings.rows, rng)
    candidates = CandidatePool(
        rows,
        training,
        held_out,
        writer,
        lambda population: np.asarray(predict(population), np.float64)[:, counted],
        max_size,
        max_depth,
        linear_scaling,
        settings.price,
        linearizer_of,
        found,
    )
    effort = Effort(lambda: clock() >= deadline, work)
    looking = Looking(pool, effort, rng, lambda: deadline - clock())
    parts: dict[Nodes, float] = {}
    interrupted = False
    try:
        chosen = relevant_features(rows.columns, rows.target, rows.weights, settings.features)
        # Nothing correlates with a target that is constant on some of the rows.
        used = (screened, training, held_out)
        if all(_varies(rows.target[which], rows.weights[which]) for which in used) and len(chosen):
            features = Coordinates.of_features(rows.columns, chosen)
            reduced: list[Coordinates] = []
            with candidates.surviving("symmetries"):
                reduced = systems(features, rows.target, rows.weights, writer, DOUBTS)[: settings.coordinates]
            rounds = Rounds(candidates, screened, chosen, settings.members, rng, effort, looking)
            parts = rounds.run([features, *reduced])
    except KeyboardInterrupt:
        interrupted = True
    if not candidates.unexplained:
        mean = constant(float(dot(rows.target, rows.weights)))
        candidates.keep(mean, "constant", 1.0 if _varies(rows.target, rows.weights) else 0.0)
    population, unexplained, kinds = candidates.chosen(settings.candidates)
    blocks, scores = _parts(candidates, parts, settings.parts, max_size)
    return Guesses(
        population, unexplained, kinds, blocks, scores, candidates.exact, interrupted, tuple(candidates.failures)
    )


def _split(rows: int, screened: int, rng: np.random.Generator) -> tuple[Mask, Mask, Indices]:
    """Training rows, held-out rows, and the training rows that banks are evaluated on."""
    order = rng.permutation(rows)
    count = int(TRAINING_SHARE * rows)
    training = np.ones(rows, bool)
    if rows - count >= FEWEST_HELD_OUT:
        training[order[count:]] = False
    held_out = ~training if not training.all() else training
    return training, held_out, np.sort(order[training[order]][:screened])


def _varies(values: Floats, weights: Floats) -> bool:
    """Whether values vary by more than rounding, on enough rows and with positive weights."""
    total = float(weights.sum())
    if len(values) < FEWEST_VARYING or not total > 0:
        return False
    # With the weights of relative noise, the rounding errors of large values count as little as those of small ones.
    scaled = values / np.abs(values).max(initial=np.finfo(np.float64).tiny)
    centered = scaled - float(dot(scaled, weights)) / total
    return bool(np.sqrt(dot(centered**2, weights)) > LEAST_SPREAD * np.sqrt(dot(scaled**2, weights)))


def _parts(pool: CandidatePool, members: dict[Nodes, float], most: int, max_size: int) -> tuple[Population, Floats]:
    """Building blocks with their scores, the best first; the smaller first if they are equally good."""
    scores = dict(members)
    for nodes, unexplained in pool.best_ingredients(FORMULAS_WITH_PARTS).items():
        scores[nodes] = max(scores.get(nodes, 0.0), 1 - unexplained)
    order = sorted(
        (nodes for nodes in scores if len(nodes) <= max_size), key=lambda nodes: (-scores[nodes], len(nodes), nodes)
    )[:most]
    population = Population.from_tapes([tape(nodes) for nodes in order], pool.writer.primitives, max_size)
    return population, np.array([scores[nodes] for nodes in order])
