"""Damaged graph files: each must become a program or one GraphImportError, quickly and in little memory.

    python experiments/fuzz_graphs.py --files 1000000 --folder fuzz

Starts from the fixtures of the tests and damages bytes, fields and text. What a file is follows from the seed and its
number alone. Files are read in worker processes with a limit on memory, so that a crash is noticed and named; the
folder keeps which blocks are done, and every file that did something else than it should. Run again with the same
folder, the campaign goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from shine.errors import GraphImportError
from shine.frontends.graphdef import load_graph
from shine.frontends.graphdef.files import read_message
from shine.frontends.graphdef.messages import TYPE_NAMES, messages
from shine.frontends.graphdef.operations import OPERATIONS
from shine.lang.program.interpret import interpret_arrays
from shine.lang.program.program import Program

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "graphs"
BLOCK = 1000
SECONDS = 5.0
"""Time after which a file counts as one that takes too long."""

INTERESTING = (0, 1, -1, 2, 3, 7, 127, 128, 255, 1 << 20, 1 << 26, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1)
WORDS = (
    b"node", b"name", b"op", b"input", b"attr", b"key", b"value", b"tensor", b"tensor_shape", b"dim", b"size", b"-1",
    b"{", b"}", b"<", b">", b"[", b"]", b":", b'"', b"'", b"#", b"\\", b"\\377", b"9223372036854775808", b"1e999",
    b"nan", b"DT_FLOAT", b"DT_INT32", b"DT_STRING", b"99", b"^", b":1", b"library", b"function", b"\xff", b"\x00", b"",
)  # fmt: skip


def number(rng: Generator) -> int:
    """A number at the edge of something."""
    return int(INTERESTING[rng.integers(len(INTERESTING))])


def damage_bytes(content: bytes, other: bytes, rng: Generator) -> bytes:
    """Change, cut, repeat, insert and exchange bytes."""
    data = bytearray(content)
    for _ in range(rng.geometric(0.6)):
        start = int(rng.integers(len(data) + 1))
        end = min(len(data), start + int(rng.geometric(0.1)))
        match int(rng.integers(7)):
            case 0:
                data[start:end] = rng.bytes(end - start)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = data[start:end] * int(rng.integers(1, 4))
            case 3:
                data[start:start] = rng.bytes(int(rng.integers(1, 9)))
            case 4 if start < len(data):
                data[start] ^= 1 << int(rng.integers(8))
            case 5:
                data[start:end] = other[start:end]
            case _:
                if rng.random() < 0.2:
                    del data[start:]
    return bytes(data)


def damage_text(content: bytes, other: bytes, rng: Generator) -> bytes:
    """Change, repeat and exchange the words of a text."""
    words = re.findall(rb'\s+|"[^"]*"|\w+|.', content)
    others = re.findall(rb'\s+|"[^"]*"|\w+|.', other)
    for _ in range(rng.geometric(0.6)):
        start = int(rng.integers(len(words) + 1))
        end = min(len(words), start + int(rng.geometric(0.2)))
        match int(rng.integers(6)):
            case 0:
                words[start:end] = [WORDS[rng.integers(len(WORDS))]]
            case 1:
                del words[start:end]
            case 2:
                words[start:start] = words[start:end]
            case 3:
                words[start:start] = [WORDS[rng.integers(len(WORDS))] for _ in range(rng.integers(1, 5))]
            case 4 if others:
                place = int(rng.integers(len(others)))
                words[start:end] = others[place : place + int(rng.geometric(0.1))]
            case _:
                words[start:end] = [str(number(rng)).encode()]
    return b"".join(words)


def damage_node(graph: Any, node: Any, rng: Generator) -> None:
    """Change one thing of a node."""
    nodes = graph.node
    some = nodes[int(rng.integers(len(nodes)))]
    match int(rng.integers(9)):
        case 0:
            node.op = [*OPERATIONS, "MatMul", "PartitionedCall", *(f.signature.name for f in graph.library.function)][
                int(rng.integers(len(OPERATIONS) + 2 + len(graph.library.function)))
            ]
        case 1:
            node.input.append(some.name + ("", ":0", ":1", ":z:0", ":99999999")[rng.integers(5)])
        case 2 if node.input:
            node.input[int(rng.integers(len(node.input)))] = ("^" if rng.random() < 0.2 else "") + some.name
        case 3 if node.input:
            del node.input[int(rng.integers(len(node.input)))]
        case 4:
            node.name = some.name if rng.random() < 0.3 else node.name + "'"
        case 5:
            nodes.add().CopyFrom(some)
        case 6 if node.attr:
            key = sorted(node.attr)[int(rng.integers(len(node.attr)))]
            if rng.random() < 0.3:
                del node.attr[key]
            elif rng.random() < 0.3 and key in some.attr:
                node.attr[key].CopyFrom(some.attr[key])
            else:
                node.attr[key].type = list(TYPE_NAMES)[rng.integers(12)]
        case 7 if "value" in node.attr:
            damage_tensor(node.attr["value"].tensor, rng)
        case _:
            shape = node.attr["shape"].shape
            shape.dim.add(size=number(rng))
            shape.unknown_rank = bool(rng.random() < 0.1)


def damage_tensor(tensor: Any, rng: Generator) -> None:
    """Change one thing of a constant."""
    match int(rng.integers(6)):
        case 0:
            tensor.tensor_shape.dim.add(size=number(rng))
        case 1:
            tensor.tensor_content = rng.bytes(int(rng.integers(20)))
        case 2:
            tensor.dtype = list(TYPE_NAMES)[rng.integers(12)]
        case 3:
            tensor.float_val.append(rng.choice([0.0, np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38]))
        case 4:
            tensor.int_val.append(int(np.int32(number(rng) & 0x7FFFFFFF)))
        case _:
            tensor.ClearField(("tensor_content", "float_val", "tensor_shape", "int_val")[rng.integers(4)])


def damage_fields(graph: Any, rng: Generator) -> bytes:
    """Change fields of a graph and of its functions, and write it in either form."""
    for _ in range(rng.geometric(0.6)):
        holders = [graph.node, *(function.node_def for function in graph.library.function)]
        nodes = holders[int(rng.integers(len(holders)))]
        if nodes:
            damage_node(graph, nodes[int(rng.integers(len(nodes)))], rng)
    if rng.random() < 0.3:
        return str(messages().text_format.MessageToString(graph)).encode()
    content: bytes = graph.SerializeToString()
    return content


class Corpus:
    """The whole files that damage starts from."""

    def __init__(self, folder: Path) -> None:
        paths = sorted([*folder.glob("*.pb"), *folder.glob("*.pbtxt")])
        self.contents = [content for content in (path.read_bytes() for path in paths) if len(content) < 20_000]
        self.graphs = [read_message(content) for content in self.contents]
        self.texts = [content for content in self.contents if content.lstrip().startswith(b"node")]

    def file(self, seed: int, position: int) -> bytes:
        """The damaged file of a number."""
        rng = np.random.default_rng([seed, position])
        kind = rng.random()
        if kind < 0.6:
            graph = messages().GraphDef()
            graph.CopyFrom(self.graphs[rng.integers(len(self.graphs))])
            return damage_fields(graph, rng)
        files, damage = (self.contents, damage_bytes) if kind < 0.8 else (self.texts, damage_text)
        return damage(files[rng.integers(len(files))], files[rng.integers(len(files))], rng)


def judged(content: bytes) -> tuple[str, str]:
    """What becomes of a file: 'read', 'refused' or 'wrong', and the message."""
    try:
        program = load_graph(content)
    except GraphImportError as error:
        return "refused", str(error)
    except Exception as error:  # whatever else it may be is what is looked for
        return "wrong", f"{type(error).__name__}: {error}"
    try:
        run(program)
    except ZeroDivisionError:
        pass
    except Exception as error:
        return "wrong", f"when run: {type(error).__name__}: {error}"
    return "read", ""


def run(program: Program) -> None:
    """Evaluate a small program; what reads must also have a value."""
    arrays = []
    for parameter in program.parameters:
        if parameter.value is not None:
            arrays.append(parameter.value)
        else:
            shape = [1 if size is None else size for size in parameter.shape or ()]
            arrays.append(np.ones(shape if np.prod(shape, dtype=float) < 1000 else (), parameter.dtype))
    sizes = [array.size for array in arrays]
    if len(program.statements) < 200 and max(sizes, default=0) < 1000:
        # Rows that nobody promised may not fit each other; the smallest ones always do.
        if any(parameter.shape is None or None in parameter.shape for parameter in program.arguments):
            return
        interpret_arrays(program, arrays)


def work(connection: Connection, current: Any, seed: int, megabytes: int) -> None:
    """A worker: is sent ranges of numbers, answers with what was found in them."""
    corpus = Corpus(FIXTURES)
    load_graph(corpus.contents[0])
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while (task := connection.recv()) is not None:
        counts: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        examples: dict[str, int] = {}
        found: list[tuple[int, str]] = []
        slowest = 0.0
        for position in range(*task):
            current.value = position
            content = corpus.file(seed, position)
            start = time.process_time()
            verdict, message = judged(content)
            seconds = time.process_time() - start
            slowest = max(slowest, seconds)
            if seconds > SECONDS:
                verdict, message = "wrong", f"took {seconds:.1f} s"
            counts[verdict] += 1
            if verdict == "refused":
                reasons[general(message)] += 1
                examples.setdefault(general(message), position)
            elif verdict == "wrong":
                found.append((position, message[:300]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        connection.send((dict(counts), dict(reasons), examples, found, slowest, peak))


def general(message: str) -> str:
    """A message without its names and numbers."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", message)
    return re.sub(r"\d+|\[[^]]*\]", "N", text)[:110]


class Worker:
    """A worker process, and the range it is at."""

    def __init__(self, context: Any, seed: int, megabytes: int) -> None:
        self.connection, other = context.Pipe()
        self.current = context.Value("q", -1, lock=False)
        self.process = context.Process(target=work, args=(other, self.current, seed, megabytes), daemon=True)
        self.process.start()
        other.close()
        self.task = (0, 0)

    def give(self, task: tuple[int, int]) -> None:
        """Hand over a range."""
        self.task = task
        self.connection.send(task)


def campaign(
    tasks: Iterator[tuple[int, int]], make: Callable[[], Worker], count: int, report: Callable[..., None]
) -> None:
    """Have workers do all the tasks; a worker that dies names the file, and another one goes on behind it."""
    workers = []
    for task in tasks:
        worker = make()
        worker.give(task)
        workers.append(worker)
        if len(workers) == count:
            break
    while workers:
        ready = wait([worker.connection for worker in workers])
        for worker in [each for each in workers if each.connection in ready]:
            workers.remove(worker)
            try:
                report(worker.task, *worker.connection.recv())
            except (EOFError, ConnectionError):
                worker.process.join()
                position = worker.current.value
                crash = [(position, f"the process ended with code {worker.process.exitcode}")]
                report((worker.task[0], position + 1), {"wrong": 1}, {}, {}, crash, 0.0, 0)
                rest = (position + 1, worker.task[1])
                worker = make()
                if rest[0] < rest[1]:
                    worker.give(rest)
                    workers.append(worker)
                    continue
            following = next(tasks, None)
            if following is not None:
                worker.give(following)
                workers.append(worker)
            else:
                worker.connection.send(None)


def remaining(files: int, done: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges of numbers that are not done yet."""
    position = 0
    for start, end in [*sorted(done), (files, files)]:
        while position < min(start, files):
            following = min(position + BLOCK, start, files)
            yield position, following
            position = following
        position = max(position, end)


TEXT_ERROR = "it is not a GraphDef as text"
"""How messages begin that go on with protobuf's, which are others in other versions of it."""


def keep(folder: Path, contents: Sequence[bytes]) -> None:
    """Write small files with different messages, as a corpus with what is said of each."""
    folder.mkdir(parents=True, exist_ok=True)
    expected: dict[str, str] = {}
    alike: Counter[str] = Counter()
    for content in contents:
        verdict, message = judged(content)
        message = TEXT_ERROR if message.startswith(TEXT_ERROR) else message
        beginning = " ".join(general(message).split()[:6])
        if verdict == "refused" and len(content) <= 1500 and alike[beginning] < 4 and message.isascii():
            alike[beginning] += 1
            name = f"{len(expected):03}.graph"
            (folder / name).write_bytes(content)
            expected[name] = message[:100]
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run or go on with a campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--megabytes", type=int, default=512, help="memory a worker may take to read files")
    parser.add_argument("--folder", type=Path, default=Path("fuzz_graphs"))
    parser.add_argument("--keep", type=Path, help="where to write one small file for each kind of message")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / f"seed{options.seed}.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = [(int(line["start"]), int(line["end"])) for line in lines]
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    examples: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    slowest, peak = 0.0, 0
    for line in lines:
        counts.update(line["counts"])
        reasons.update(line["reasons"])
        examples.update({reason: position for reason, position in line["examples"].items() if reason not in examples})
        found += [(position, message) for position, message in line["found"]]
        slowest, peak = max(slowest, line["slowest"]), max(peak, line["peak"])
    corpus = Corpus(FIXTURES)
    began, before = time.monotonic(), sum(counts.values())

    def report(
        task: tuple[int, int],
        new_counts: dict[str, int],
        new_reasons: dict[str, int],
        new_examples: dict[str, int],
        new_found: list[tuple[int, str]],
        seconds: float,
        megabytes: int,
    ) -> None:
        nonlocal slowest, peak
        counts.update(new_counts)
        reasons.update(new_reasons)
        examples.update({reason: position for reason, position in new_examples.items() if reason not in examples})
        found.extend(new_found)
        slowest, peak = max(slowest, seconds), max(peak, megabytes)
        for position, message in new_found:
            (options.folder / f"seed{options.seed}_{position}.graph").write_bytes(corpus.file(options.seed, position))
            print(f"file {position}: {message}", flush=True)
        line = {
            "start": task[0], "end": task[1], "counts": new_counts, "reasons": new_reasons, "examples": new_examples,
            "found": new_found, "slowest": seconds, "peak": megabytes,
        }  # fmt: skip
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        total = sum(counts.values())
        if (total // BLOCK) % 10 == 0:
            rate = (total - before) / (time.monotonic() - began)
            print(f"{total} files, {dict(counts)}, {rate:.0f} a second, slowest {slowest:.2f} s, {peak} MB", flush=True)

    context = multiprocessing.get_context("spawn")
    campaign(
        remaining(options.files, done),
        lambda: Worker(context, options.seed, options.megabytes),
        options.workers,
        report,
    )
    print(f"{sum(counts.values())} files: {dict(counts)}; slowest {slowest:.2f} s, peak {peak} MB")
    for reason, times in reasons.most_common(40):
        print(f"{times:8d}  {reason}")
    for position, message in found:
        print(f"WRONG {position}: {message}")
    if options.keep is not None:
        keep(options.keep, [corpus.file(options.seed, position) for position in sorted(examples.values())])


if __name__ == "__main__":
    main()
