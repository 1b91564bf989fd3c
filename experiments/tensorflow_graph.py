"""A graph of 300 nodes over a million rows, in TensorFlow and in Shine: `python experiments/tensorflow_graph.py`.

The graphs are random, seeded and elementwise: some have arithmetic only, in the others about a quarter of the nodes are
exp, log, sin or tanh. Each is written as a GraphDef. TensorFlow runs the file on the CPU, without XLA (with its default
graph rewriting) and with XLA (`jit_compile=True`); Shine runs it by `shine.jit(shine.load_graph(file))`; on all cores
and on one. A timed call takes arrays as they are and makes one new array; everything was called once before.

TensorFlow runs in processes of its own: `--tensorflow-python PATH` names a Python that has it, so Shine's environment
needs none. The contenders take turns, so that slow minutes of a shared machine hit all of them. Times are medians, in
ms. The columns `CPU` have the ratios of processor time, which other load changes less. If results disagree, no figures
are printed. The graphs keep all values between -8 and 8, so that errors grow little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEATURES = ("a", "b", "c", "d")
BOUND = 8.0
"""No value exceeds this, by interval arithmetic, except the few sums that join loose ends."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-2}
"""Largest difference of results that rounding explains, in 300 nodes with values of up to `BOUND`."""

TYPES = {"float64": "DT_DOUBLE", "float32": "DT_FLOAT"}

Interval = tuple[float, float]


def _products(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


BINARY: dict[str, Callable[[Interval, Interval], Interval]] = {
    "AddV2": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "Sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "Mul": _products,
    "Maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "Minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}
"""Range of each operation's result."""

FUNCTIONS: dict[str, Callable[[Interval], Interval]] = {
    "Exp": lambda a: (float(np.exp(a[0])), float(np.exp(a[1]))),
    # A steep logarithm would enlarge errors.
    "Log": lambda a: (float(np.log(a[0])), float(np.log(a[1]))) if a[0] >= 0.1 else (-np.inf, np.inf),
    "Sin": lambda a: (-1.0, 1.0),
    "Tanh": lambda a: (float(np.tanh(a[0])), float(np.tanh(a[1]))),
}


@dataclass(frozen=True)
class Settings:
    """A graph and its rows."""

    nodes: int
    rows: int
    dtype: str
    functions: bool
    seed: int

    @property
    def name(self) -> str:
        """Name of the graph in the table."""
        return f"{'exp log sin tanh' if self.functions else '+ - * min max'}, {self.dtype}"


def random_graph(settings: Settings) -> bytes:
    """A GraphDef with a number of operations; all results are used, some several times."""
    from shine.frontends.graphdef.messages import TYPE_NAMES, messages

    graph = messages().GraphDef()
    graph.versions.producer = 24
    kind = {name: number for number, name in TYPE_NAMES.items()}[TYPES[settings.dtype]]
    rng = np.random.default_rng(settings.seed)
    ranges: dict[str, Interval] = {}
    unused: list[str] = []
    made = 0

    def add(operation: str, *inputs: str) -> None:
        nonlocal made
        made += 1
        graph.node.add(name=f"node_{made}", op=operation, input=inputs).attr["T"].type = kind
        for used in set(inputs) & set(unused):
            unused.remove(used)
        unused.append(f"node_{made}")

    for name in FEATURES:
        graph.node.add(name=name, op="Placeholder").attr["dtype"].type = kind
        ranges[name] = (-2.0, 2.0)
        unused.append(name)
    for position, number in enumerate(rng.uniform(-1, 1, 40)):
        node = graph.node.add(name=f"constant_{position}", op="Const")
        node.attr["dtype"].type = kind
        tensor = node.attr["value"].tensor
        tensor.dtype = kind
        tensor.tensor_shape.SetInParent()
        (tensor.double_val if settings.dtype == "float64" else tensor.float_val).append(number)
        ranges[node.name] = (float(number), float(number))
    while made + len(unused) - 1 < settings.nodes:
        # Prefer unused values, so that few are left to be added up at the end.
        pool = unused if rng.random() < 0.95 else list(ranges)
        if settings.functions and rng.random() < 0.2:
            operation = str(rng.choice(list(FUNCTIONS)))
            fit = [name for name in ranges if is_bounded(FUNCTIONS[operation](ranges[name]))]
            if not fit:
                continue
            inputs: tuple[str, ...] = (str(rng.choice(sorted(set(fit) & set(pool)) or fit)),)
            found = FUNCTIONS[operation](ranges[inputs[0]])
        else:
            operation = str(rng.choice(list(BINARY), p=[0.3, 0.3, 0.3, 0.05, 0.05]))
            inputs = (str(rng.choice(pool)), str(rng.choice(list(ranges))))
            found = BINARY[operation](ranges[inputs[0]], ranges[inputs[1]])
        if is_bounded(found):
            add(operation, *inputs)
            ranges[f"node_{made}"] = found
    while len(unused) > 1:
        add("AddV2", unused[0], unused[1])
    graph.node.add(name="result", op="Identity", input=unused).attr["T"].type = kind
    counted = sum(node.op not in ("Placeholder", "Const", "Identity") for node in graph.node)
    assert counted == settings.nodes, counted
    made_bytes: bytes = graph.SerializeToString()
    return made_bytes


def is_bounded(values: Interval) -> bool:
    """Whether a node is accepted: its values are not too large, and not constant."""
    return values[0] >= -BOUND and values[1] <= BOUND and values[1] - values[0] > 0.5


def columns_of(settings: Settings) -> list[NDArray[Any]]:
    """The features."""
    rng = np.random.default_rng(settings.seed + 1)
    return [rng.uniform(-2, 2, settings.rows).astype(settings.dtype) for _ in FEATURES]


def seconds_of(run: Callable[[], Any]) -> tuple[float, float]:
    """How long a call takes, and how long all processors worked for it."""
    started, worked = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - started, time.process_time() - worked


# TensorFlow's side: a process that answers one line for each line it gets.


def tensorflow_worker(threads: int) -> None:
    """Answer `load PATH SETTINGS`, `run PATH off|on` and `save PATH off|on FILE`, a line of JSON each."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tensors: dict[str, list[Any]] = {}
    functions: dict[tuple[str, str], Any] = {}
    for line in sys.stdin:
        command, path, *rest = json.loads(line)
        if command == "load":
            settings = Settings(**rest[0])
            definition = tf.compat.v1.GraphDef.FromString(Path(path).read_bytes())
            wrapped = tf.compat.v1.wrap_function(
                lambda definition=definition: tf.graph_util.import_graph_def(definition, name=""), []
            )
            pruned = wrapped.prune([f"{name}:0" for name in FEATURES], "result:0")
            tensors[path] = [tf.constant(column) for column in columns_of(settings)]
            functions[path, "off"] = pruned
            functions[path, "on"] = tf.function(lambda *x, pruned=pruned: pruned(*x), jit_compile=True)
            answer: Any = tf.__version__
        elif command == "run":
            # An array on the CPU: nothing is copied, but the value must be there.
            answer = seconds_of(lambda path=path, xla=rest[0]: functions[path, xla](*tensors[path]).numpy())
        else:
            np.save(rest[1], functions[path, rest[0]](*tensors[path]).numpy())
            answer = True
        print(json.dumps(answer), flush=True)


class Worker:
    """TensorFlow in another process, with a number of threads."""

    def __init__(self, python: str, threads: int) -> None:
        command = [python, __file__, "--worker", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *details: object) -> None:
        self.process.communicate()

    def ask(self, *words: object) -> Any:
        """Send a command and wait for its answer."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"TensorFlow's process ended at {words[0]!r}; does {self.process.args[0]} have it?")
        return json.loads(answer)


# Shine's side.


def shine_runs(path: Path, columns: list[NDArray[Any]], threads: int) -> tuple[Callable[[], Any], float]:
    """A call over all rows, and the seconds it took to read and compile."""
    import shine
    from shine.kernels.kernel import Kernel

    started = time.perf_counter()
    # as `shine.jit` does, with a number of threads
    kernel = Kernel(shine.load_graph(path, outputs=["result"]), threads=threads)
    kernel(*(column[:1000] for column in columns))
    seconds = time.perf_counter() - started
    order = [columns[FEATURES.index(label)] for label in kernel.labels]
    return lambda: kernel(*order), seconds


def compare(settings: Settings, path: Path, workers: dict[int, Worker], repeats: int) -> list[dict[str, Any]]:
    """Times of all contenders on one graph, with as many threads as each worker has."""
    path.write_bytes(random_graph(settings))
    columns = columns_of(settings)
    results = []
    for threads, worker in workers.items():
        worker.ask("load", str(path), asdict(settings))
        ours, compile_seconds = shine_runs(path, columns, threads)
        expected = ours()
        differences = {}
        for xla in ("off", "on"):
            file = path.with_suffix(".npy")
            worker.ask("save", str(path), xla, str(file))
            differences[xla] = float(np.abs(np.load(file) - expected).max())
            if not differences[xla] <= TOLERANCES[settings.dtype]:
                raise SystemExit(f"{settings.name}: results differ by {differences[xla]} with XLA {xla}")
        times: dict[str, list[tuple[float, float]]] = {"shine": [], "off": [], "on": []}
        for _ in range(repeats):
            times["shine"].append(seconds_of(ours))
            for xla in ("off", "on"):
                times[xla].append(worker.ask("run", str(path), xla))
        results.append(
            {**asdict(settings), "threads": threads, "times": times, "differences": differences,
             "compile_seconds": compile_seconds}
        )  # fmt: skip
        print_row(settings, results[-1])
    return results


def print_row(settings: Settings, result: dict[str, Any]) -> None:
    """A line of the table."""
    seconds, work = ({name: median(t[i] for t in times) for name, times in result["times"].items()} for i in (0, 1))
    cells = [
        settings.name, result["threads"], *(f"{1e3 * seconds[name]:.1f}" for name in ("shine", "off", "on")),
        *(f"**{seconds[xla] / seconds['shine']:.2f}**" for xla in ("off", "on")),
        *(f"{work[xla] / work['shine']:.2f}" for xla in ("off", "on")),
        f"{max(result['differences'].values()):.1e}", f"{result['compile_seconds']:.2f}",
    ]  # fmt: skip
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorflow-python", default=sys.executable, help="a Python that has TensorFlow")
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write everything measured")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        tensorflow_worker(options.worker)
        return
    from shine.bench.host import description

    machine = description()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, {machine['versions']}\n")
    print("| graph | threads | Shine | TensorFlow | with XLA | ratio | to XLA | CPU | to XLA | difference | compile |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    results: list[dict[str, Any]] = []
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        workers = {
            threads: stack.enter_context(Worker(options.tensorflow_python, threads)) for threads in sorted({1, cores})
        }
        for functions in (False, True):
            for dtype in TYPES:
                settings = Settings(options.nodes, options.rows, dtype, functions, options.seed)
                path = Path(folder) / f"{dtype}_{functions}.pb"
                results += compare(settings, path, workers, options.repeats)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
