"""Do native code, the machines and the reference agree, over many pairs of tree and row?

    python tests/campaigns/agreement.py [--pairs 10000000] [--seed 0]

`helpers/tree_agreement.py` lists the statements that are checked. Each disagreement is printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.tree_agreement import (
    GRADIENT_ROWS,
    machine_disagreements,
    primitive_disagreements,
    tree_disagreements,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000, help="(tree, row) pairs")
    parser.add_argument("--rows", type=int, default=5_000, help="rows each tree is evaluated on")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    found = []
    batches = max(1, options.pairs // (2 * options.rows * 20))
    for _ in tqdm(range(batches), unit="batch", disable=None):
        for dtype in ("float64", "float32"):
            found += tree_disagreements(rng, 20, options.rows, dtype)
            found += machine_disagreements(rng, 20, options.rows, dtype)
            found += primitive_disagreements(rng, options.rows, dtype)
    print("\n".join(found[:50]))
    pairs = batches * 2 * 20 * options.rows
    asked = batches * 20 * min(options.rows, GRADIENT_ROWS)
    print(f"{pairs} pairs of tree and row: native and reference, and as many: native and machine")
    print(f"{asked} pairs: native and gradient machine")
    print(f"{len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
