"""The evaluator of a search's individuals, by its settings."""

from __future__ import annotations

from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.losses.form import Loss
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines
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
