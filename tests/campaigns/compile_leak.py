"""How much does the process grow over many compiles?

python tests/campaigns/compile_leak.py [--compiles 20000]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys

from tqdm import tqdm

import shine

ALLOWED_MEGABYTES = 5
"""Growth over 20 000 compiles that is not a leak; 2.8 was measured."""

NOISE_MEGABYTES = 1
"""Memory the allocator may keep after a few compiles."""


def resident_megabytes() -> float:
    """Resident memory of this process, from Linux's accounting."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiles", type=int, default=20_000)
    options = parser.parse_args()
    values = []
    for number in tqdm(range(options.compiles + 200), unit="compile", disable=None):
        if number == 200:
            gc.collect()
            values.append(resident_megabytes())
        kernel = shine.jit(f"sqrt(a*a + {number}.5*b)", opt_level="O1")
        assert kernel(2.0, 0.0) == 2.0
        if number == 200 + options.compiles // 2:
            values.append(resident_megabytes())
    gc.collect()
    values.append(resident_megabytes())
    start, middle, end = values
    print(f"{options.compiles} compiles: {start:.1f} MB at the start, {middle:.1f} halfway, {end:.1f} at the end")
    print(f"growth {end - start:.2f} MB")
    return int(end - start > ALLOWED_MEGABYTES * options.compiles / 20_000 + NOISE_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
