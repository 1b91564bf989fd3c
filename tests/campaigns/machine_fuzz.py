"""Do all tiers agree on populations of random primitives, shapes and sizes, over rows with special values?

    python tests/campaigns/machine_fuzz.py [--trees 1000] [--seed 0] [--largest 1000]

`helpers/population_agreement.py` lists the statements that are checked. Each disagreement is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.population_agreement import batch, row_counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=1000, help="nodes")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts: Counter[str] = Counter()
    found: list[str] = []
    begin = time.perf_counter()
    with tqdm(total=options.trees, unit="tree", disable=None) as progress:
        while counts["trees"] < options.trees:
            dtype = ("float64", "float32")[int(rng.integers(2))]
            rows = int(rng.choice(row_counts(dtype))) if rng.random() < 0.7 else int(rng.integers(1, 3000))
            count = min(int(rng.choice([1, 3, 20])), options.trees - counts["trees"])
            found += batch(rng, count, options.largest, dtype, rows, counts)
            progress.update(count)
    print("\n".join(found[:50]))
    for name, number in sorted(counts.items()):
        print(f"{name}: {number}")
    print(f"{time.perf_counter() - begin:.0f} s, {len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
