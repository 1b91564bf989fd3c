"""Seeding by invariants: guesses to start evolution from, found by enumeration and regression.

The path to a guess: `guesses` (the stage) -> `rounds` (banks grow) -> `search_table` and `searches` (estimates) ->
`skeletons` (constants) -> `candidate_pool` (measured and ranked). docs/seeding.md describes the method.
"""

from shine.search.seeding.candidate_pool import Finding
from shine.search.seeding.guesses import Guesses, SeedingSettings, find_guesses

__all__ = ["Finding", "Guesses", "SeedingSettings", "find_guesses"]
