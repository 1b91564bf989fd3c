"""How much does the process grow over many compiles?

python experiments/compile_leak.py [--compiles 20000]
"""

from __future__ import annotations

import argparse
import gc
import os

from tqdm import tqdm

import shine


def resident_megabytes() -> float:
    """Resident memory of this process, from Linux's accounting."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
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


if __name__ == "__main__":
    main()
