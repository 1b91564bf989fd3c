"""On how many seeds does `shine evolve configs/pythagoras.yaml` end with the exact formula, and how fast?

    python experiments/pythagoras_seeds.py [--seeds 20] [--set key=value ...]

Each run is a process of its own, so the seconds include starting Python.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import shine

CONFIG = Path(__file__).parents[1] / "configs" / "pythagoras.yaml"


def is_exact(expression: str) -> bool:
    """Whether a formula equals the hypotenuse on points the run has not seen."""
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0.1, 1e4, (2, 1000))
    return bool(np.allclose(shine.jit(expression, params=("a", "b"))(a, b), np.hypot(a, b), rtol=1e-12, atol=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--set", dest="sets", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    settings = [word for value in options.sets for word in ("--set", value)]
    solved, times = 0, []
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            command = [sys.executable, "-m", "shine", "evolve", str(CONFIG), "--seed", str(seed), "--out", str(out)]
            start = time.perf_counter()
            subprocess.run([*command, "--quiet", *settings], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
            result = json.loads((out / "result.json").read_text())
        best = result["best"]
        good = best["loss"] < 1e-12 and is_exact(best["expression"])
        solved += good
        print(
            f"seed {seed:2d}  {times[-1]:5.2f} s  {result['generations']:3d} generations  "
            f"{result['evaluations']:6d} evaluations  loss {best['loss']:.2e}  {'' if good else 'MISSED '}"
            f"{best['expression']}",
            flush=True,
        )
    print(f"exact on {solved} of {options.seeds}; seconds: median {np.median(times):.2f}, most {max(times):.2f}")
    return 0 if solved >= 0.95 * options.seeds else 1


if __name__ == "__main__":
    sys.exit(main())
