"""Seeding by invariants: guesses to start evolution from, found by enumeration and regression.

The path to a guess: `slices` (in turn with evolution) -> `task` (what is asked for) -> `guesses` (the stage) ->
`rounds` (banks grow) -> `search_table` and `searches` (estimates) -> `skeletons` (constants) -> `candidate_pool`
(measured and ranked).
docs/seeding.md describes the method.
"""

from shine.search.seeding.guesses import Guesses, find_guesses, guesses_in_slices
from shine.search.seeding.slices import Slices
from shine.search.seeding.task import Finding, SeedingSettings, SeedingTask

__all__ = ["Finding", "Guesses", "SeedingSettings", "SeedingTask", "Slices", "find_guesses", "guesses_in_slices"]
