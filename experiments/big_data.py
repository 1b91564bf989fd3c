"""Data larger than memory, from the file to the predictions: `python experiments/big_data.py --rows 100000000`.

Makes a Parquet file of `--rows` rows and 6 columns of float64 in `--folder` (48 bytes a row) and prints a Markdown
table: seconds, rows a second and the largest resident memory of each step, beside those of reading the file's bytes and
of Arrow's own scan. The steps are whole processes of the command line: a search that is killed and then resumed, and
predictions from file to file. Each search reads all rows once at the beginning, and four to seven times at the end.
With `--compare`, the same search also runs without being killed, and must end with the same front. The file is dropped
from the system's cache before the first step, and everything is deleted in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shine.faces.runs.opening import complete_lines

GROUP = 1 << 20
NOISE = 0.1
CONFIG = """\
data: {{path: {data}, target: y}}
primitives: [add, mul, div, exp]
evolution: {{population: 300, renewal: 10}}
stop: {{seconds: null, generations: {generations}}}
"""
SCAN = """\
import sys, pyarrow.dataset as dataset
options = dataset.ParquetFragmentScanOptions(pre_buffer=False)  # which would keep the whole file in memory
found = dataset.dataset(sys.argv[1]).scanner(batch_size=131072, batch_readahead=4, fragment_scan_options=options)
print(sum(batch.num_rows for batch in found.to_batches()))
"""


@dataclass(frozen=True)
class Used:
    """Seconds and largest resident memory, in MiB, of a process."""

    seconds: float
    resident: float


def make(path: Path, rows: int) -> None:
    """The table: a law of three columns, noise, and two columns that do not matter."""
    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pyarrow.schema([(name, "float64") for name in "abcdey"])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, rows, GROUP):
            count = min(GROUP, rows - start)
            columns = rng.uniform(1, 5, (5, count))
            a, b, c = columns[:3]
            y = 3.21 * a * np.exp(-0.37 * b) + 0.45 * c + rng.normal(0, NOISE, count)
            file.write(pyarrow.table(dict(zip("abcdey", [*columns, y], strict=True)), schema=schema))


def used_by(command: Sequence[str], kill_when: Callable[[], bool] | None = None) -> Used:
    """Run a command; kill it as soon as something is the case."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while kill_when is not None and process.poll() is None:
        if kill_when():
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.2)
    _, status, resources = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (0 if kill_when is None else -signal.SIGKILL):
        raise SystemExit(f"{' '.join(command)}: ended with {process.returncode}")
    return Used(time.monotonic() - began, resources.ru_maxrss / 1024)


def read_bytes(path: Path) -> float:
    """Seconds to read a file that the system does not have in its cache."""
    with path.open("rb", buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        memory, began = bytearray(1 << 22), time.monotonic()
        while file.readinto(memory):
            pass
    return time.monotonic() - began


def generations_in(folder: Path) -> int:
    """Generations up to the last line of a run's log, the first population included."""
    log = folder / "log.jsonl"
    lines = complete_lines(log.read_bytes()) if log.exists() else []
    return lines[-1]["generation"] + 1 if lines else 0


def has_checkpoint(folder: Path) -> bool:
    """Whether a run can be resumed."""
    return any(folder.glob("checkpoints/*"))


def front_of(folder: Path) -> object:
    """The front that a run found, and the formula that it recommends."""
    record = json.loads((folder / "result.json").read_text())
    return record["front"], record["best"], record["reason"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--folder", type=Path, default=Path("big_data"))
    parser.add_argument("--compare", action="store_true", help="also search without being killed")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    try:
        measure(options.folder, options.rows, options.generations, options.compare)
    finally:
        shutil.rmtree(options.folder)


def measure(folder: Path, rows: int, generations: int, compare: bool) -> None:
    """The steps, one line each."""
    data, run, out = folder / "data.parquet", folder / "run", folder / "predictions.parquet"
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(data=data.resolve(), generations=generations))
    shine = [sys.executable, "-m", "shine"]
    streaming = ["--set", "data.stream=true"]
    began = time.monotonic()
    make(data, rows)
    print(f"{rows} rows, {data.stat().st_size / 1e9:.2f} GB, made in {time.monotonic() - began:.0f} s;", end=" ")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n", flush=True)
    print("| step | seconds | million rows a second | MiB resident |\n|---|---|---|---|", flush=True)

    def tell(step: str, seconds: float, resident: float | None = None) -> None:
        memory = "" if resident is None else f"{resident:.0f}"
        print(f"| {step} | {seconds:.1f} | {rows / seconds / 1e6:.2f} | {memory} |", flush=True)

    tell("bytes of the file, not cached", read_bytes(data))
    scan = used_by([sys.executable, "-c", SCAN, str(data)])
    tell("Arrow's scan, cached as far as memory allows", scan.seconds, scan.resident)
    killed = used_by(
        [*shine, "evolve", str(config), "--out", str(run), "--quiet", *streaming],
        lambda: generations_in(run) > generations // 2 and has_checkpoint(run),
    )
    tell("search, killed", killed.seconds, killed.resident)
    before = generations_in(run)
    resumed = used_by([*shine, "resume", str(run), "--quiet"])
    tell(f"search, resumed after generation {before - 1}", resumed.seconds, resumed.resident)
    if compare:
        other = folder / "other"
        whole = used_by([*shine, "evolve", str(config), "--out", str(other), "--quiet", *streaming])
        tell("search, not killed", whole.seconds, whole.resident)
        print("\nsame front:", front_of(run) == front_of(other), "\n", flush=True)
    predicted = used_by([*shine, "predict", str(run), str(data), "--out", str(out)])
    tell("predictions to a file", predicted.seconds, predicted.resident)
    record = json.loads((run / "result.json").read_text())
    print(f"\n{record['best']['expression']}\nloss {record['best']['loss']:.8g}; {record['reason']}")


if __name__ == "__main__":
    main()
