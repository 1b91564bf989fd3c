"""Does any failure to write, or any damage to what was written, cost a run its last good checkpoint or its result?

    python tests/campaigns/write_faults.py [--faults 200] [--seed 0]

`helpers/faulty_runs.py` lists the faults and what must hold in spite of them.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.faulty_runs import CONFIG, WatchedShelf, damage, write_fault
from helpers.faulty_system import random_system

from shine.faces.config import read_job
from shine.faces.runs import keeping
from shine.runs import chosen_folder, run_job


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, found = random.Random(options.seed), Counter[str]()
    keeping.Shelf = WatchedShelf  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "config.yaml").write_text(CONFIG)
        whole = run_job(read_job(scratch / "config.yaml"), chosen_folder(scratch / "whole"), checkpoint_seconds=0)
        expected = list(whole.rows())
        for number in range(options.faults):
            writes = bool(number % 2)
            wrong = write_fault(scratch, expected, random_system(rng)) if writes else damage(scratch, expected, rng)
            found[wrong] += 1
            if wrong:
                print(f"{number}: {wrong}", flush=True)
            shutil.rmtree(scratch / "run")
    good = found.pop("", 0)
    print(f"{good} of {options.faults} faults did no harm; {WatchedShelf.lost} good checkpoints lost")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
