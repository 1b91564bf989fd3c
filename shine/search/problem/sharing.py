"""Thread settings when islands run in workers."""

from __future__ import annotations

from dataclasses import replace

from shine.base.parallel import Pool
from shine.compiler.threads import processors
from shine.search.evolution.settings import EvolutionSettings
from shine.search.problem.settings import FitnessSettings


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
