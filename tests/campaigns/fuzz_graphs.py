"""Damaged graph files: each must become a program or one GraphImportError, quickly and in little memory.

    python tests/campaigns/fuzz_graphs.py --files 1000000 --folder fuzz
    python tests/campaigns/fuzz_graphs.py --files 100000 --folder fuzz_modules --of modules

Starts from the fixtures of the tests; `helpers/damaged_graphs.py` damages them. With `--of modules` they are graphs of
tensors, with their configurations and checkpoints, damaged by `helpers/damaged_modules.py`, and with `--of onnx` models
of ONNX (`helpers/damaged_models.py`); both become modules. A file
follows from the seed and its number alone. Worker processes with a limit on memory read the files, so that a crash is
noticed and named. The folder keeps which blocks are done, and every file that did something wrong. Run again with the
same folder, the campaign goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

from helpers import damaged_graphs, damaged_models, damaged_modules

BLOCK = 1000

SUBJECTS: dict[str, tuple[Callable[[], Any], Callable[[bytes], tuple[str, str]]]] = {
    "programs": (lambda: damaged_graphs.Corpus(damaged_graphs.FIXTURES), damaged_graphs.judged),
    "modules": (damaged_modules.ModuleCorpus, damaged_modules.judged),
    "onnx": (damaged_models.ModelCorpus, damaged_models.judged),
}
"""The corpus that is damaged, and the judge of how it is read."""


SECONDS = 5.0
"""Seconds a file may take."""


def work(connection: Connection, current: Any, subject: str, seed: int, megabytes: int) -> None:
    """A worker process: receives ranges of numbers and sends back its findings."""
    make_corpus, judged = SUBJECTS[subject]
    corpus = make_corpus()
    for position in range(20):  # the modules that reading needs are loaded here
        judged(corpus.file(seed, position))
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
    """A worker process and its present range."""

    def __init__(self, context: Any, subject: str, seed: int, megabytes: int) -> None:
        self.connection, other = context.Pipe()
        self.current = context.Value("q", -1, lock=False)
        self.process = context.Process(target=work, args=(other, self.current, subject, seed, megabytes), daemon=True)
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
    """Let workers do all tasks; if a worker dies, report its file and let another one go on after it."""
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
"""Beginning of messages that end with protobuf's own, which depends on its version."""


def named(message: str) -> str:
    """A preliminary file name made of a message."""
    words = re.findall(r"[a-z]+", general(message).partition("): ")[2].lower() or general(message).lower())
    return "_".join(words[:8])


def keep(folder: Path, contents: Sequence[bytes], judged: Callable[[bytes], tuple[str, str]]) -> None:
    """Write a corpus of small files with different messages, and the messages."""
    folder.mkdir(parents=True, exist_ok=True)
    expected: dict[str, str] = {}
    alike: Counter[str] = Counter()
    for content in contents:
        verdict, message = judged(content)
        message = TEXT_ERROR if message.startswith(TEXT_ERROR) else message
        beginning = " ".join(general(message).split()[:6])
        if verdict == "refused" and len(content) <= 1500 and alike[beginning] < 4 and message.isascii():
            alike[beginning] += 1
            name = f"{named(message)}_{alike[beginning]}.graph"
            (folder / name).write_bytes(content)
            expected[name] = message[:100]
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Run or go on with a campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=SUBJECTS, default="programs", help="what is read")
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
    corpus = SUBJECTS[options.of][0]()
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
        lambda: Worker(context, options.of, options.seed, options.megabytes),
        options.workers,
        report,
    )
    print(f"{sum(counts.values())} files: {dict(counts)}; slowest {slowest:.2f} s, peak {peak} MB")
    for reason, times in reasons.most_common(40):
        print(f"{times:8d}  {reason}")
    for position, message in found:
        print(f"WRONG {position}: {message}")
    if options.keep is not None:
        keep(
            options.keep,
            [corpus.file(options.seed, position) for position in sorted(examples.values())],
            SUBJECTS[options.of][1],
        )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
