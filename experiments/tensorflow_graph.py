"""Graphs over a million rows, in TensorFlow and in Shine: `python experiments/tensorflow_graph.py`.

The graphs are random, seeded and elementwise: some have arithmetic only (+ - * min max), in the others about a quarter
of the nodes are exp, log, sin or tanh. Each is written as a GraphDef. TensorFlow runs the file on the CPU, without XLA
(with its default graph rewriting) and with XLA (`jit_compile=True`); Shine runs it by
`shine.jit(shine.load_graph(file))`; on all cores and on one. A timed call takes arrays as they are and makes one new
array; everything was called once before.

By default there are four graphs of 300 nodes, one of each kind and number type. `--graphs 20` draws twenty of each,
with 100 to 500 nodes, divisions and other shares of the operations, and prints how the ratios to XLA are distributed.

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
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEATURES = ("a", "b", "c", "d")
DRAWN_NODES = 100, 501
"""Fewest nodes of a drawn graph, and one more than the most."""

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
    # A small divisor would enlarge errors.
    "RealDiv": lambda a, b: _products(a, (1 / b[1], 1 / b[0])) if b[0] >= 0.25 else (-np.inf, np.inf),
}
"""Range of each operation's result."""

SHARES = (0.3, 0.3, 0.3, 0.05, 0.05, 0.0)
"""How often each operation of `BINARY` is tried in the four graphs."""

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
    shares: tuple[float, ...] = SHARES

    @property
    def name(self) -> str:
        """Name of the graph in the table."""
        return f"{'exp log sin tanh' if self.functions else 'arithmetic'}, {self.dtype}"


def random_graph(settings: Settings) -> bytes:
    """A GraphDef with a number of operations; all results are used, some several times."""
    from shine.formats.read.protobuf import TYPE_NAMES, messages

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
            operation = str(rng.choice(list(BINARY), p=settings.shares))
            inputs = (str(rng.choice(pool)), str(rng.choice(list(ranges))))
            found = BINARY[operation](ranges[inputs[0]], ranges[inputs[1]])
        unused_after = len(unused) + 1 - len(set(inputs) & set(unused))
        if is_bounded(found) and made + unused_after <= settings.nodes:
            add(operation, *inputs)
            ranges[f"node_{made}"] = found
    while len(unused) > 1:
        add("AddV2", unused[0], unused[1])
    graph.node.add(name="result", op="Identity", input=unused).attr["T"].type = kind
    counted = sum(node.op not in ("Placeholder", "Const", "Identity") for node in graph.node)
    assert counted == settings.nodes, counted
    made_bytes: bytes = graph.SerializeToString()
    return made_bytes


def drawn(kind: Settings, seed: int) -> Settings:
    """A graph of a kind with a random number of nodes and shares of the operations."""
    rng = np.random.default_rng(seed)
    shares = 0.5 * np.array(SHARES) + 0.5 * rng.dirichlet(np.ones(len(SHARES)))
    return replace(kind, nodes=int(rng.integers(*DRAWN_NODES)), seed=seed, shares=tuple(shares.tolist()))


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
    """Answer `load PATH SETTINGS`, `run PATH off|on`, `save PATH off|on FILE`, `forget PATH`: a line of JSON each."""
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
        elif command == "forget":
            for xla in ("off", "on"):
                del functions[path, xla]
            answer = len(tensors.pop(path))
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
    from shine.evaluate.kernels.kernel import Kernel

    started = time.perf_counter()
    # as `shine.jit` does, with a number of threads
    kernel = Kernel(shine.load_graph(path, outputs=["result"]), threads=threads)
    kernel(*(column[:1000] for column in columns))
    seconds = time.perf_counter() - started
    order = [columns[FEATURES.index(label)] for label in kernel.labels]
    return lambda: kernel(*order), seconds


def compare(
    settings: Settings, path: Path, workers: dict[int, Worker], repeats: int, peers: Sequence[str]
) -> list[dict[str, Any]]:
    """Times of all contenders on one graph, with as many threads as each worker has.

    Peers are TensorFlow with XLA ``"off"`` or ``"on"``.
    """
    path.write_bytes(random_graph(settings))
    columns = columns_of(settings)
    results = []
    for threads, worker in workers.items():
        worker.ask("load", str(path), asdict(settings))
        ours, compile_seconds = shine_runs(path, columns, threads)
        expected = ours()
        differences = {}
        for xla in peers:
            file = path.with_suffix(".npy")
            worker.ask("save", str(path), xla, str(file))
            differences[xla] = float(np.abs(np.load(file) - expected).max())
            if not differences[xla] <= TOLERANCES[settings.dtype]:
                raise SystemExit(f"{settings.name}: results differ by {differences[xla]} with XLA {xla}")
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ("shine", *peers)}
        for _ in range(repeats):
            times["shine"].append(seconds_of(ours))
            for xla in peers:
                times[xla].append(worker.ask("run", str(path), xla))
        worker.ask("forget", str(path))
        results.append(
            {**asdict(settings), "threads": threads, "times": times, "differences": differences,
             "compile_seconds": compile_seconds}
        )  # fmt: skip
    return results


def medians(result: dict[str, Any], clock: int) -> dict[str, float]:
    """Seconds of each contender: by the clock if `clock` is 0, of the processors if it is 1."""
    return {name: median(times[clock] for times in every) for name, every in result["times"].items()}


def row_of(settings: Settings, result: dict[str, Any]) -> list[str]:
    """A line of the table of graphs."""
    seconds, work = medians(result, 0), medians(result, 1)
    return [
        settings.name, str(result["threads"]), *(f"{1e3 * seconds[name]:.1f}" for name in ("shine", "off", "on")),
        *(f"**{seconds[xla] / seconds['shine']:.2f}**" for xla in ("off", "on")),
        *(f"{work[xla] / work['shine']:.2f}" for xla in ("off", "on")),
        f"{max(result['differences'].values()):.1e}", f"{result['compile_seconds']:.2f}",
    ]  # fmt: skip


def distribution_of(settings: Settings, results: Sequence[dict[str, Any]]) -> list[str]:
    """A line of the table of distributions: quartiles of the ratios to XLA, and the graphs for which XLA is faster."""
    cells = [settings.name, str(results[0]["threads"]), str(len(results))]
    for clock in (0, 1):
        ratios = [times["on"] / times["shine"] for times in (medians(result, clock) for result in results)]
        cells += [f"{ratio:.2f}" for ratio in np.quantile(ratios, [0, 0.25, 0.5, 0.75, 1])]
        cells.append(str(sum(ratio < 1 for ratio in ratios)))
    return cells


def print_row(cells: Sequence[str]) -> None:
    """A line of a table in Markdown."""
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(*names: str) -> None:
    """The first lines of a table in Markdown."""
    print_row(names)
    print_row(["---"] * len(names))


GRAPH_COLUMNS = (
    "graph", "threads", "Shine", "TensorFlow", "with XLA", "ratio", "to XLA", "CPU", "to XLA", "difference", "compile"
)  # fmt: skip
DISTRIBUTION_COLUMNS = (
    "graphs", "threads", "number", *2 * ("smallest", "1/4", "median", "3/4", "largest", "XLA faster")
)  # fmt: skip


def run_kind(kind: Settings, folder: Path, workers: dict[int, Worker], options: argparse.Namespace) -> list[Any]:
    """Measure and print one graph, or the distribution of several."""
    if not options.graphs:
        results = compare(kind, folder / "graph.pb", workers, options.repeats, ("off", "on"))
        for result in results:
            print_row(row_of(kind, result))
        return results
    results = []
    for number in range(options.graphs):
        settings = drawn(kind, options.seed + number)
        results += compare(settings, folder / f"{number}.pb", workers, options.repeats, ("on",))
    for threads in workers:
        print_row(distribution_of(kind, [result for result in results if result["threads"] == threads]))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorflow-python", default=sys.executable, help="a Python that has TensorFlow")
    parser.add_argument("--nodes", type=int, default=300, help="nodes of the four graphs")
    parser.add_argument("--graphs", type=int, default=0, help="draw so many graphs of each kind, of 100 to 500 nodes")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write everything measured")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        tensorflow_worker(options.worker)
        return
    from shine.faces.bench.run import description

    machine = description()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, {machine['versions']}\n")
    if options.graphs:
        print("Ratios to XLA, first by the clock, then in processor time:\n")
    print_head(*(DISTRIBUTION_COLUMNS if options.graphs else GRAPH_COLUMNS))
    results: list[dict[str, Any]] = []
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        workers = {
            threads: stack.enter_context(Worker(options.tensorflow_python, threads)) for threads in sorted({1, cores})
        }
        for functions in (False, True):
            for dtype in TYPES:
                kind = Settings(options.nodes, options.rows, dtype, functions, options.seed)
                results += run_kind(kind, Path(folder), workers, options)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
