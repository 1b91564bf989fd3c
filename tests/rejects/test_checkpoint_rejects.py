"""Checkpoints with a valid digest and invalid content: one clear error each."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shine.base.errors import ExportError, ShineError
from shine.faces.config import read_job
from shine.faces.runs.checkpoints import FORMAT, VERSION, Checkpoint, Shelf, checkpoint_bytes, read_checkpoint
from shine.runs import chosen_folder, read_result, resume_job, run_job

CONFIG = """
data: {generate: {rows: 12, noise: 0.5, features: {a: {uniform: {low: 1, high: 2}}, b: {normal: {}}}, target: a*b}}
primitives: [add, mul, sin]
evolution: {population: 12, max_size: 7, max_depth: 4, islands: 2, seeding: 0, constant_steps: 2}
fitness: {tier: reference, threads: 1, noise: absolute}
stop: {generations: 3, seconds: null}
"""
HUGE = 10**400


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three generations."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "c.yaml").write_text(CONFIG)
    run_job(read_job(folder / "c.yaml"), chosen_folder(folder / "run"), checkpoint_seconds=0)
    return folder / "run"


@pytest.fixture(scope="module")
def good(run: Path) -> Checkpoint:
    return read_checkpoint(Shelf(run).paths[0])


def resumed(run: Path, content: bytes, folder: Path) -> str | None:
    """The error message of resuming from a checkpoint with this content; None if it resumes."""
    if not folder.exists():
        folder.mkdir()
        shutil.copy(run / "config.yaml", folder)
    (folder / "log.jsonl").unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "0000000003.npz").write_bytes(content)
    try:
        resume_job(folder, overrides=["stop.generations=4"], tell=lambda notice: None)
    except ShineError as error:
        return str(error)
    finally:
        (folder / "result.json").unlink(missing_ok=True)
    return None


def with_header(checkpoint: Checkpoint, **changes: Any) -> bytes:
    return checkpoint_bytes(Checkpoint({**checkpoint.header, **changes}, checkpoint.arrays))


def with_array(checkpoint: Checkpoint, name: str, array: Any) -> bytes:
    return checkpoint_bytes(Checkpoint(checkpoint.header, {**checkpoint.arrays, name: array}))


def signed(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A file with the format's outer form and a valid digest."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    content = stream.getvalue()[:-64]
    return content + hashlib.sha256(content).hexdigest().encode()


HEADERS = [
    ("generation", -1, "generation must be a whole number from 0"),
    ("generation", HUGE, "generation must be a whole number from 0"),
    ("generation", True, "generation must be a whole number"),
    ("evaluations", 1.5, "evaluations must be a whole number"),
    ("seconds", -1.0, "seconds must be a number from 0"),
    ("seconds", "1", "seconds must be a number from 0"),
    ("stagnation", 1, "a part of the run's state is missing or has another form"),
    ("stagnation", {"length": 1.5, "fell": 0}, "the description length must be a number as text"),
    ("stagnation", {"length": "nan", "fell": 0}, "the description length is NaN"),
    ("stagnation", {"length": "-1.5", "fell": 99}, "generation of the last improvement must be a whole number"),
    ("features", "ab", "features must be a list of names"),
    ("features", ["a", "a"], "listed twice"),
    ("features", ["a", "µ"], "another primitive set"),
    ("features", ["a", "c"], "another primitive set"),
    ("functions", ["add", "mul", "sinus"], "unknown primitive 'sinus'"),
    ("functions", ["add"], "are not formulas"),
    ("complexity", {"a": 0}, "complexity of 'a' must be above 0 and at most 1000"),
    ("complexity", {"zeta": 2}, "complexity has 'zeta', which is not part"),
    ("key", {}, "key must be a whole number"),
    ("key", -1, "key must be a whole number"),
    ("past", 3, "a part of the run's state is missing or has another form"),
    ("past", {"lives": -1, "generations": 0, "evaluations": 0}, "past lives must be a whole number from 0"),
    ("past", {"lives": 0, "generations": 99, "evaluations": 0}, "past generations must be a whole number from 0"),
    ("islands", [], "the islands have 0 individuals, but their arrays hold 24"),
    ("islands", 3, "a part of the run's state is missing or has another form"),
    ("settings", 1, "does not name its run"),
    ("data", None, "the data have changed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value", "message"), HEADERS, ids=[f"{key} {str(v)[:9]}" for key, v, _ in HEADERS])
def test_a_header_of_wrong_content(
    key: str, value: Any, message: str, run: Path, good: Checkpoint, tmp_path: Path
) -> None:
    told = resumed(run, with_header(good, **{key: value}), tmp_path / "r")
    assert told is not None and message in told, told
    assert len(told) < 600


@pytest.mark.parametrize("key", [-1, 2**64, 1.5, True, None, "7", [7]])
def test_a_key_of_random_numbers_that_is_none(run: Path, good: Checkpoint, tmp_path: Path, key: Any) -> None:
    told = resumed(run, with_header(good, key=key), tmp_path / "r")
    assert told is not None and "key must be a whole number from 0 to " in told, told
    islands = [{**island, "key": key} for island in good.header["islands"]]
    told = resumed(run, with_header(good, islands=islands), tmp_path / "r")
    assert told is not None and "key of an island must be a whole number from 0 to 18446744073709551615" in told, told


@pytest.mark.slow
def test_arrays_of_wrong_content(run: Path, good: Checkpoint, tmp_path: Path) -> None:
    arrays = good.arrays
    codes, sizes, scores = arrays["islands.codes"], arrays["islands.sizes"], arrays["archive.scores"]
    deep = codes.copy()
    longest = int(sizes.argmax())
    deep[longest, : sizes[longest]] = [1, *[5] * (sizes[longest] - 1)]  # sin(sin(...)), deeper than allowed
    best = int(np.flatnonzero(np.isfinite(scores[:, 0]))[-1])
    moved = arrays["archive.codes"].copy()
    moved[best] = [1, *[0] * (codes.shape[1] - 1)]
    for name, array, message in [
        ("islands.codes", codes.astype(np.int32), "is an array of int32"),
        ("islands.codes", codes.astype(">i2"), "is an array of >i2"),
        ("islands.codes", codes[:, :3], "differ in their width"),
        ("islands.codes", codes[0], "with 1 dimensions"),
        ("islands.codes", np.full_like(codes, 6), "are not formulas"),
        ("islands.codes", np.full_like(codes, 5), "are not formulas"),
        ("islands.codes", np.full_like(codes, -1), "are not formulas"),
        ("islands.codes", deep, "are not formulas|more nodes or levels"),
        ("islands.values", arrays["islands.values"][:-1], "are not formulas"),
        ("islands.sizes", sizes * 0, "are not formulas"),
        ("islands.sizes", sizes + 100, "are not formulas"),
        ("islands.losses", np.full_like(arrays["islands.losses"], np.nan), "NaN or negative"),
        ("islands.losses", arrays["islands.losses"] * -1, "NaN or negative"),
        ("archive.codes", moved, "rows of other complexities|are not formulas"),
        ("archive.scores", scores[:, :2], "has the shape"),
        ("archive.scores", -1 - np.abs(scores), "NaN or negative"),
        ("past.codes", arrays["past.codes"][:, :1].astype(np.int32), "is an array of int32"),
        ("known.younger_keys", arrays["known.younger_keys"] * 0, "are 0 or occur twice"),
        ("known.younger_losses", arrays["known.younger_losses"][:1], "has 1 losses for"),
        ("parts.sizes", np.ones(3, np.int64), "are not formulas"),
    ]:
        told = resumed(run, with_array(good, name, array), tmp_path / "r")
        assert told is not None and any(part in told for part in message.split("|")), (name, told)
        assert len(told) < 600


def claimed(shape: str, dtype: str = "<f8") -> bytes:
    """The header of an array that claims a shape, without data."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


HEADER = json.dumps({"format": FORMAT, "version": VERSION}).encode()
FILES = {
    "compressed": (signed({"header.json": HEADER, "big.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED), "are compressed"),
    "no header": (signed({"a.npy": b""}), "no item named 'header.json'"),
    "a list": (signed({"header.json": b"[]"}), "header.json is not an object"),
    "deep": (signed({"header.json": b"[" * 100_000}), "cannot be read"),
    "digits": (signed({"header.json": HEADER[:-1] + b', "n": ' + b"9" * 5000 + b"}"}), "cannot be read"),
    "another format": (signed({"header.json": b'{"format": "x", "version": 1}'}), "it is a 'x' of version '1'"),
    "version 0": (signed({"header.json": HEADER.replace(b"2}", b"0}")}), "of version '0', not"),
    "version true": (signed({"header.json": HEADER.replace(b"2}", b"true}")}), "of version 'True', not"),
    "version text": (signed({"header.json": HEADER.replace(b"2}", b'"2"}')}), "of version '2', not"),
    "claims terabytes": (signed({"header.json": HEADER, "a.npy": claimed("(1000000000000,)")}), "has 0 bytes"),
    "negative shape": (signed({"header.json": HEADER, "a.npy": claimed("(-1, 0)")}), "has 0 bytes"),
    "objects": (signed({"header.json": HEADER, "a.npy": claimed("(0,)", "|O")}), "Object arrays cannot be loaded"),
    "no shape": (signed({"header.json": HEADER, "a.npy": claimed("'a'")}), "cannot be read"),
    "no array": (signed({"header.json": HEADER, "a.npy": b"a" * 50}), "cannot be read"),
    "a cut array": (signed({"header.json": HEADER, "a.npy": b"\x93NUMPY\x01\x00"}), "cannot be read"),
    "nested shape": (signed({"header.json": HEADER, "a.npy": claimed("(" * 60 + ")" * 60)}), "cannot be read"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_other_content(kind: str, tmp_path: Path) -> None:
    content, message = FILES[kind]
    (tmp_path / "c.npz").write_bytes(content)
    with pytest.raises(ExportError) as caught:
        read_checkpoint(tmp_path / "c.npz")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_not_waited_for(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "r")
    for path in ("checkpoints/0000000009.npz", "log.jsonl", "result.json"):
        (tmp_path / "r" / path).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "r" / path)
        with pytest.raises(ExportError, match="is not a file"):
            if path == "result.json":
                read_result(tmp_path / "r")
            resume_job(tmp_path / "r", overrides=["stop.generations=9"], tell=lambda notice: None)
        (tmp_path / "r" / path).unlink()


def values(rng: random.Random) -> Any:
    """An unexpected value."""
    plain = [None, True, -1, 0, 1, 2**31, 2**63, HUGE, -0.5, 1e308, "", "x", "µ", "a" * 10_000, [], {}, [[]], {"a": {}}]
    return rng.choice(plain)


def damaged(header: Any, rng: random.Random) -> Any:
    """A copy with another value at a random place."""
    header = copy.deepcopy(header)
    node = header
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return header
        key = rng.choice(list(keys))
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        if rng.random() < 0.2:
            del node[key]
        else:
            node[key] = values(rng)
        return header


def disturbed(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    """A copy of another shape or type, or with other numbers in it."""
    array = array.copy()
    way = rng.randrange(6)
    if way == 0:
        return array.astype(rng.choice(["i1", "i8", "u8", "f4", "f8", ">f8", "c16", "U5", "?"]))
    if way == 1:
        return array[: rng.randrange(len(array) + 1)]
    if way == 2:
        return np.asfortranarray(np.concatenate([array, array]))
    if way == 3:
        return array.reshape(-1) if rng.random() < 0.5 else array[None]
    flat = array.reshape(-1)
    for _ in range(rng.choice([1, 3, 30]) if len(flat) else 0):
        number = rng.choice([-1, 0, 1, 2, 3, 4, 5, 6, 7, 100, 32767, -32768, np.nan, np.inf, -np.inf, 1e308, 5e-324])
        with np.errstate(all="ignore"):
            flat[rng.randrange(len(flat))] = np.array(number).astype(array.dtype)
    return array


def contents(good: Checkpoint, seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    while True:
        header, arrays = good.header, dict(good.arrays)
        if rng.random() < 0.5:
            header = damaged(header, rng)
        else:
            name = rng.choice(list(arrays))
            arrays[name] = disturbed(arrays[name], rng)
        yield checkpoint_bytes(Checkpoint(header, arrays))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_checkpoint_is_resumed_or_refused(seed: int, run: Path, good: Checkpoint, tmp_path: Path) -> None:
    every = contents(good, seed)
    outcomes = [resumed(run, next(every), tmp_path / "r") for _ in range(40)]
    for told in outcomes:
        assert told is None or max(map(len, told.splitlines())) < 500, told
    assert len({told for told in outcomes if told}) > 10
