"""Is random input at every door read, or refused with one clear error?

    python tests/campaigns/doors.py [--tries 20000] [--seed 0] [--doors formulas tables ...]

`helpers/doors.py` draws the input. The first input that does anything else ends the campaign with its traceback.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers.doors import DOORS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--doors", nargs="+", choices=list(DOORS), default=list(DOORS))
    options = parser.parse_args()
    warnings.simplefilter("error")
    for door in options.doors:
        with tempfile.TemporaryDirectory() as folder:
            DOORS[door](random.Random(f"{options.seed} {door}"), options.tries, Path(folder))
        print(f"{door}: all read, or refused with a clear error", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
