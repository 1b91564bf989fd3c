"""The stage that looks for guesses: choose features, split the rows, find symmetries, run the searches, rank."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import Regression, dot, inner, log
from shine.lang.population import Population
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.formula_writer import Nodes, constant, tape
from shine.search.seeding.candidate_pool import CandidatePool
from shine.search.seeding.effort import Effort
from shine.search.seeding.rounds import Rounds
from shine.search.seeding.search_runner import SearchRunner
from shine.search.seeding.symmetries import systems
from shine.search.seeding.task import SeedingSettings, SeedingTask

DOUBTS = (0.01, 0.06)
"""Largest doubt of a likely symmetry, and of a possible one: squared distance of the gradient from it, as a share."""

AT_ONCE = 1000
"""Features that are scored together, which bounds the memory."""


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
def find_guesses(task: SeedingTask, rng: np.random.Generator, effort: Effort | None = None) -> Guesses:
    """Look for formulas to start from, in one go: see `guesses_in_slices`."""
    *_, found = guesses_in_slices(task, rng, effort or Effort())
    return found


def guesses_in_slices(task: SeedingTask, rng: np.random.Generator, effort: Effort) -> Generator[Guesses]:
    """Look for formulas to start from: small expressions, with constants solved for in closed form.

    Parameters
    ----------
    task : SeedingTask
    rng : numpy.random.Generator
        The same generator gives the same guesses, unless the deadline ends the stage.
    effort : Effort
        What the stage may spend, and where it pauses. At the deadline, the current step is finished: up to a second
        with a large bank.

    Yields
    ------
    Guesses
        All guesses so far, at each pause and at the end.

    Notes
    -----
    The stage ends early, with the guesses found so far, if a candidate fits to within rounding, and at a
    KeyboardInterrupt. Infinities and other floating-point signals are expected: NumPy should ignore them.
    docs/seeding.md describes the method.
    """
    task = task.of_positive_weights
    rows, settings = task.rows, task.settings
    training, held_out, screened = _split(len(rows.target), settings.rows, rng)
    candidates = CandidatePool(task, training, held_out)
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
                found = systems(features, rows.target, rows.weights, candidates.writer, DOUBTS)
                reduced = found[: settings.coordinates]
            rounds = Rounds(candidates, screened, chosen, rng, SearchRunner(task.pool, effort, rng))
            for parts in rounds.run([features, *reduced]):
                if effort.is_paused and candidates.unexplained:
                    yield _guesses(candidates, parts, settings, False)
    except KeyboardInterrupt:
        interrupted = True
    if not candidates.unexplained:
        mean = constant(float(dot(rows.target, rows.weights)))
        candidates.keep(mean, "constant", 1.0 if _varies(rows.target, rows.weights) else 0.0)
    yield _guesses(candidates, parts, settings, interrupted)


def _guesses(
    candidates: CandidatePool, parts: dict[Nodes, float], settings: SeedingSettings, interrupted: bool
) -> Guesses:
    population, unexplained, kinds = candidates.chosen(settings.candidates)
    blocks, scores = _parts(candidates, parts)
    return Guesses(
        population, unexplained, kinds, blocks, scores, candidates.exact, interrupted, tuple(candidates.failures)
    )


def _split(rows: int, screened: int, rng: np.random.Generator) -> tuple[Mask, Mask, Indices]:
    """Training rows, held-out rows, and the training rows that banks are evaluated on."""
    order = rng.permutation(rows)
    count = int(0.6 * rows)  # share of the rows that constants are fitted on
    training = np.ones(rows, bool)
    # Fewest held-out rows; with fewer, constants are fitted on all rows, and formulas measured on the same: the error
    # of a few rows says less than they do about the constants.
    if rows - count >= 40:
        training[order[count:]] = False
    held_out = ~training if not training.all() else training
    return training, held_out, np.sort(order[training[order]][:screened])


def _varies(values: Floats, weights: Floats) -> bool:
    """Whether values vary by more than rounding, on enough rows and with positive weights."""
    total = float(weights.sum())
    # Rows below which a target does not count as varying: a line fits two rows exactly.
    if len(values) < 3 or not total > 0:
        return False
    # With the weights of relative noise, the rounding errors of large values count as little as those of small ones.
    scaled = values / np.abs(values).max(initial=np.finfo(np.float64).tiny)
    centered = scaled - float(dot(scaled, weights)) / total
    # Standard deviation of a target, as a share of its largest value, below which it varies by rounding only.
    return bool(np.sqrt(dot(centered**2, weights)) > 1e-12 * np.sqrt(dot(scaled**2, weights)))


def _parts(pool: CandidatePool, members: dict[Nodes, float]) -> tuple[Population, Floats]:
    """Building blocks with their scores, the best first; the smaller first if they are equally good."""
    scores, max_size = dict(members), pool.task.max_size
    for nodes, unexplained in pool.best_ingredients(20).items():  # best formulas whose parts are building blocks
        scores[nodes] = max(scores.get(nodes, 0.0), 1 - unexplained)
    order = sorted(
        (nodes for nodes in scores if len(nodes) <= max_size), key=lambda nodes: (-scores[nodes], len(nodes), nodes)
    )[: pool.task.settings.parts]
    population = Population.from_tapes([tape(nodes) for nodes in order], pool.task.primitives, max_size)
    return population, np.array([scores[nodes] for nodes in order])


def relevant_features(columns: Floats, target: Floats, weights: Floats, most: int) -> Indices:
    """The features that explain most, alone or multiplied by another.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
        The weights add up to 1.
    most : int

    Returns
    -------
    ndarray of shape (at most `most`,), int64
        Ascending; all features that vary, if these are few enough.

    Notes
    -----
    A feature's score is the larger of two squared correlations. The first is between the target or its logarithm and
    the feature, its square, its distance from the mean, its logarithm or its inverse. The second is between its product
    with another feature and the residual of a regression on the best features and their squares: only this one shows a
    product of two features centered at 0. With very many features, only products of the best ones are tried.
    """
    # Range of a feature, as a share of its largest value, below which it varies by rounding only.
    varying = np.flatnonzero(np.ptp(columns, axis=1) > 1e-12 * np.abs(columns).max(axis=1))
    if len(varying) <= most:
        return varying
    root = np.sqrt(weights)
    views = _standardized(np.stack([target, log(np.abs(target))]), weights) * root
    blocks = (varying[start : start + AT_ONCE] for start in range(0, len(varying), AT_ONCE))
    scores = np.concatenate([_scores(columns[block], views, weights) for block in blocks])
    order = np.argsort(-scores, kind="stable")
    best = _standardized(columns[varying[order[:most]]], weights)
    # Length, as a share of its own, below which a column adds only rounding to the others.
    regression = Regression.of(np.concatenate([np.ones((1, len(target))), best, best * best]) * root, 1e-8)
    residual = regression.rest(views[0])
    size = float(np.sqrt(dot(residual, residual)))
    if size > 1e-9:  # length of the residual, as a share of the target's, below which it is rounding
        paired = order[:1000]  # features whose products are all tried: the time grows with the square of their number
        x = _standardized(columns[varying[paired]], weights)
        together = np.abs(inner(x * (root * residual / size), x))
        np.fill_diagonal(together, 0)
        scores[paired] = np.maximum(scores[paired], together.max(axis=1) ** 2 * size**2)
    return np.sort(varying[np.argsort(-scores, kind="stable")[:most]])


def _scores(columns: Floats, views: Floats, weights: Floats) -> Floats:
    """Largest squared correlation of a form of each feature with a view of the target."""
    x, root = _standardized(columns, weights), np.sqrt(weights)
    with np.errstate(all="ignore"):
        forms = [x, x * x, np.abs(x), log(np.abs(columns)), 1 / columns]
    return np.max([np.abs(inner(_standardized(form, weights) * root, views)) for form in forms], axis=(0, 2)) ** 2


def _standardized(rows: Floats, weights: Floats) -> Floats:
    """Rows with mean 0 and variance 1; 0 where that is impossible."""
    with np.errstate(all="ignore"):
        centered = rows - dot(rows, weights)[:, None]
        spread = np.sqrt(dot(centered * centered, weights))
    good = np.isfinite(spread) & (spread > 0)
    return np.where(good[:, None], np.where(good[:, None], centered, 0) / np.where(good, spread, 1)[:, None], 0)
