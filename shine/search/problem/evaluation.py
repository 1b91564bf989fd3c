"""The evaluator of a search's individuals, by its settings."""

from __future__ import annotations

from dataclasses import replace

from shine.base.parallel import Pool
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines
from shine.search.evolution.settings import EvolutionSettings
from shine.search.problem.settings import FitnessSettings


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


def shared(fitness: FitnessSettings, evolving: EvolutionSettings, pool: Pool | None) -> FitnessSettings:
    """The fitness settings of the islands, with their threads: one in a worker, if the user names no number.

    Raises
    ------
    ValueError
        If there is a pool and only one island: nothing can be done apart.
    """
    if pool is None:
        return replace(fitness, threads=fitness.threads or processors())
    if evolving.islands == 1:
        raise ValueError(
            "workers (or an executor) share islands, and islands is 1; raise it, for example to twice their number"
        )
    return replace(fitness, threads=fitness.threads or 1)
