"""Do all tiers agree, over random populations, rows and special values?

    python tests/campaigns/agreement.py [--pairs 10000000] [--rows 5000] [--largest 100] [--seed 0]

`helpers/agreement.py` lists the statements that are checked. Batches of formulas as people write them take turns with
batches of tapes of every shape, of all of Shine's functions and two of a user's. Each disagreement is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.agreement import ASKED, Tiers, primitive_disagreements, random_dataset, row_counts
from helpers.formulas import VOCABULARIES, random_tree
from helpers.populations import PRIMITIVES, random_population

from shine.lang.population import Population

COUNT = 20
"""Individuals of a batch."""


def written(rng: np.random.Generator) -> Population:
    """Formulas as people write them, of up to 40 nodes."""
    sizes = rng.integers(1, 40, COUNT).tolist()
    trees = [random_tree(rng, VOCABULARIES[i % len(VOCABULARIES)], size) for i, size in enumerate(sizes)]
    return Population.from_trees(trees, PRIMITIVES)


def batch(rng: np.random.Generator, rows: int, largest: int, dtype: str, counts: Counter[str]) -> list[str]:
    """Disagreements over one random population and data set."""
    population = written(rng) if rng.random() < 0.5 else random_population(rng, COUNT, largest)[0]
    data = random_dataset(rng, rows, dtype, bool(rng.random() < 0.6), bool(rng.random() < 0.5))
    asked = [ASKED[i] for i in rng.choice(len(ASKED), 2, replace=False)]
    # LLVM's passes take long for large individuals.
    level = "O1" if population.sizes.max() < 100 else "O0"
    counts["individuals"] += COUNT
    counts["nodes"] += int(population.sizes.sum())
    counts["pairs of individual and row"] += COUNT * rows
    counts["largest individual"] = max(counts["largest individual"], int(population.sizes.max()))
    return Tiers(population, dtype, level).disagreements(data, asked, threads=int(rng.integers(1, 3)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000, help="pairs of individual and row")
    parser.add_argument("--rows", type=int, default=5_000, help="most rows of a data set")
    parser.add_argument("--largest", type=int, default=100, help="most nodes of an individual")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, counts = np.random.default_rng(options.seed), Counter[str]()
    found: list[str] = []
    with tqdm(total=options.pairs, unit="pair", disable=None) as progress:
        while (before := counts["pairs of individual and row"]) < options.pairs:
            dtype = ("float64", "float32")[int(rng.integers(2))]
            edge = int(rng.choice(row_counts(dtype)))
            rows = options.rows if edge > options.rows or rng.random() < 0.5 else edge
            found += batch(rng, rows, options.largest, dtype, counts)
            found += primitive_disagreements(rng, rows, dtype)
            progress.update(counts["pairs of individual and row"] - before)
    print("\n".join(found[:50]))
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    print(f"{len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
