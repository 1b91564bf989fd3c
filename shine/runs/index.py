"""The index of the runs in a folder: an SQLite file beside them, which only repeats what the folders say.

It is brought up to date before each use. If it is missing, damaged, of another version or not writable, the folders are
read again, and nothing is lost.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from shine.runs.entries import Entry, read_entry
from shine.runs.scanning import signatures
from shine.stages import stage

T = TypeVar("T")

FILE: Final = ".shine-runs.sqlite"
"""Name of the index in the folder of the runs."""

VERSION: Final = 1
"""Version of the tables, and of what `shine.runs.entries` reads: an index of another version is made anew."""

BATCH = 200
"""Runs that are read between two transactions: others need not wait, and an interrupt loses little."""

MANY = 100
"""Changed runs from which on reading them is a stage to be shown."""

BUSY = 30.0
"""Seconds to wait for another process that writes the index."""

TABLES = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, signature TEXT NOT NULL, date REAL, target TEXT, data TEXT,
    data_hash TEXT, choice INTEGER NOT NULL, generations INTEGER, evaluations INTEGER, seconds REAL, seed INTEGER,
    stopped_by TEXT, shine TEXT, problem TEXT);
CREATE TABLE formulas (
    run INTEGER NOT NULL, rank INTEGER NOT NULL, place INTEGER, best INTEGER, expression TEXT, loss REAL, r2 REAL,
    nodes INTEGER, words TEXT, PRIMARY KEY (run, rank)) WITHOUT ROWID;
CREATE TABLE choices (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);
CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE settings (key INTEGER, value, choice INTEGER, PRIMARY KEY (key, value, choice)) WITHOUT ROWID;
"""
"""Runs with the same settings share a row of `choices`. Rank 0 is the formula that the run chose; then the one of the
least loss follows."""

_KEEP = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
         sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_AUTH}  # fmt: skip
"""Errors that say nothing about the contents of the file, which is left as it is."""


def with_index(folder: Path, use: Callable[[sqlite3.Connection], T], *, rebuild: bool = False) -> T:
    """Call a function with the index of the runs in a folder, which is up to date.

    Parameters
    ----------
    folder : Path
    use : callable
        Only reads. If it raises an error of SQLite, a ValueError or a TypeError, the index is taken for damaged, made
        anew, and it is called again.
    rebuild : bool
        Read all folders again.

    Raises
    ------
    ExportError
        If the folder cannot be read.
    """
    path = folder / FILE
    found = signatures(folder)
    for attempt in range(2):
        if rebuild or attempt:
            with suppress(OSError):
                path.unlink()
        try:
            with closing(_opened(path)) as connection:
                _refresh(connection, folder, found)
                return _read(connection, use)
        except OSError:
            break
        # A damaged file may hold anything: texts that are no UTF-8, or no JSON.
        except (sqlite3.Error, ValueError, TypeError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _KEEP:
                break
    with closing(_in_memory(path)) as connection:
        _refresh(connection, folder, found)
        return _read(connection, use)


def _read(connection: sqlite3.Connection, use: Callable[[sqlite3.Connection], T]) -> T:
    """What a function reads, all at one moment."""
    connection.execute("BEGIN")
    try:
        return use(connection)
    finally:
        connection.rollback()


def _opened(path: Path) -> sqlite3.Connection:
    """The index in a file, which is created or emptied if it is not one of this version."""
    if path.exists() and not path.is_file():
        raise FileExistsError(path)  # a named pipe would block
    connection = _connection(sqlite3.connect(path, timeout=BUSY, isolation_level=None))
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _in_memory(path: Path) -> sqlite3.Connection:
    """An index for this process alone; it begins with what can be read of the file."""
    connection = _connection(sqlite3.connect(":memory:", isolation_level=None))
    if path.is_file():
        with suppress(sqlite3.Error, OSError):
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0)) as kept:
                kept.execute("SELECT count(*) FROM runs").fetchone()  # fails if it is locked; serialize() would wait
                connection.deserialize(kept.serialize())
            _prepare(connection)
            connection.execute("SELECT name FROM runs").fetchall()
            return connection
        connection.close()
        connection = _connection(sqlite3.connect(":memory:", isolation_level=None))
    _prepare(connection)
    return connection


def _connection(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA synchronous = OFF")  # what a power failure destroys is read again
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    if _version(connection) == VERSION:
        return
    with _transaction(connection):
        if _version(connection) == VERSION:  # another process was faster
            return
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            connection.execute(f'DROP TABLE "{name}"')
        for table in TABLES.split(";"):
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _refresh(connection: sqlite3.Connection, folder: Path, found: Mapping[str, str]) -> None:
    """Bring the index up to date with the signatures of the runs that there are."""
    known = dict(connection.execute("SELECT name, signature FROM runs"))
    gone = [name for name in known if name not in found]
    changed = [name for name, signature in found.items() if not signature or known.get(name) != signature]
    if gone:
        with _transaction(connection):
            for name in gone:
                _remove(connection, name)
    if not changed:
        return
    if len(changed) < MANY:
        _add_all(connection, folder, found, changed)
    else:
        with stage(f"reading {len(changed)} runs in {folder}"):
            _add_all(connection, folder, found, changed)


def _add_all(connection: sqlite3.Connection, folder: Path, found: Mapping[str, str], names: Sequence[str]) -> None:
    for start in range(0, len(names), BATCH):
        # Read before the transaction, so that other processes can write meanwhile.
        entries = [(name, read_entry(folder / name)) for name in names[start : start + BATCH]]
        with _transaction(connection):
            for name, entry in entries:
                _add(connection, name, found[name], entry)
    # Settings that no run has any more.
    with _transaction(connection):
        connection.execute("DELETE FROM choices WHERE id NOT IN (SELECT choice FROM runs)")
        if connection.execute("SELECT changes()").fetchone()[0]:
            connection.execute("DELETE FROM settings WHERE choice NOT IN (SELECT id FROM choices)")


def _remove(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM formulas WHERE run IN (SELECT id FROM runs WHERE name = ?)", (name,))
    connection.execute("DELETE FROM runs WHERE name = ?", (name,))


def _add(connection: sqlite3.Connection, name: str, signature: str, entry: Entry) -> None:
    _remove(connection, name)
    row = connection.execute(
        "INSERT INTO runs (name, signature, date, target, data, data_hash, choice, generations, evaluations, seconds,"
        " seed, stopped_by, shine, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (name, signature, entry.date, entry.target, entry.data, entry.data_hash, _choice(connection, entry.settings),
         entry.generations, entry.evaluations, entry.seconds, entry.seed, entry.stopped_by, entry.shine,
         entry.problem),
    ).lastrowid  # fmt: skip
    ranked = sorted(entry.formulas, key=lambda each: (not each.best, each.loss is None, each.loss or 0.0, each.index))
    connection.executemany(
        "INSERT INTO formulas VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (row, rank, each.index, each.best, each.expression, each.loss, each.r2, each.nodes, spaced(each.words))
            for rank, each in enumerate(ranked)
        ),
    )


def _choice(connection: sqlite3.Connection, settings: Mapping[str, Any]) -> int:
    """The row of some settings; the seed, which is a column of its own, is none of them."""
    others = {key: comparable(value) for key, value in settings.items() if key != "seed"}
    digest = hashlib.sha256(repr(sorted(others.items())).encode("utf-8", "backslashreplace")).digest()
    known = connection.execute("SELECT id FROM choices WHERE digest = ?", (digest,)).fetchone()
    if known:
        return int(known[0])
    row = connection.execute("INSERT INTO choices (digest) VALUES (?)", (digest,)).lastrowid
    assert row is not None
    connection.executemany("INSERT OR IGNORE INTO keys (key) VALUES (?)", ((key,) for key in others))
    connection.executemany(
        "INSERT INTO settings SELECT id, ?, ? FROM keys WHERE key = ?",
        ((value, row, key) for key, value in others.items()),
    )
    return row


def spaced(words: frozenset[str]) -> str:
    """Words as a text in which each stands between two blanks."""
    return f" {' '.join(sorted(words))} "


def comparable(value: Any) -> float | str:
    """A setting in the form that conditions compare: a number, or else a text."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return float(value) if abs(value) < 1 << 1000 else str(value)
    if isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()
