"""Seeding by invariants: guesses to start evolution from, found by enumeration and regression."""

from shine.gp.seeding.guesses import Guesses, SeedingSettings, find_guesses

__all__ = ["Guesses", "SeedingSettings", "find_guesses"]
