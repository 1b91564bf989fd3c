"""Seeding by invariants: formulas to start from, found by enumeration and regression."""

from shine.gp.seeding.seeding import SeedingSettings, Seeds, seed

__all__ = ["SeedingSettings", "Seeds", "seed"]
