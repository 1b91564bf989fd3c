"""Paths that a call names -> files below the server's folder, which is the process's working directory.

A path may not lead out of the folder: `..`, other absolute paths and hidden names are refused by their text, links and
everything but files and folders by what is there. Between the check and the reading, only those could put a link there
who may write to the folder: `check_private` asks, before the server starts, that this is the user alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from shine.base.errors import ShineError, placed, reason
from shine.base.files import exposure
from shine.faces.mcp.answers import quoted
from shine.lang.forms.names import listed

MOST_FILES = 10_000
"""Most files and folders in a folder that a call names."""

RUNS = Path("runs")
"""Folder of the runs."""

LONGEST = 500
"""Most characters of a path."""


class CallError(ShineError):
    """A call cannot be answered; the message says what to change."""


def check_private(folder: Path) -> None:
    """Raise a `CallError` unless a folder exists that the user alone can write to."""
    if not folder.is_dir():
        raise CallError(f"{folder}: {'is not a folder' if folder.exists() else 'no such folder'}")
    problem = exposure(folder)
    if problem is not None:
        raise CallError(f"{folder}: {problem}, so that links could lead the server elsewhere; use a folder of your own")


def existing(given: str) -> Path:
    """A file or a folder below the server's folder, with everything in it."""
    path = _relative(given)
    found = _looked_at(path)
    if found is None:
        raise CallError(f"{quoted(given)}: no such file; below the server's folder there is {_around(path)}")
    if stat.S_ISDIR(found.st_mode):
        _check_tree(path)
    return path


def run_folder(given: str) -> Path:
    """The folder of a run."""
    path = existing(given)
    if not path.is_dir() or not any((path / name).is_file() for name in ("config.yaml", "result.json")):
        raise CallError(f"{quoted(given)}: is not the folder of a run; past_runs lists them")
    return path


def new_file(given: str, endings: Collection[str]) -> Path:
    """A file to write, which does not exist: no call replaces a file."""
    path = _relative(given)
    if not path.name.endswith(tuple(endings)):
        raise CallError(f"{quoted(given)}: the name of this file ends in {listed(endings)}")
    if _looked_at(path) is not None:
        raise CallError(f"{quoted(given)}: exists already, and no call replaces a file; choose another name")
    parent = _looked_at(path.parent)
    if parent is None or not stat.S_ISDIR(parent.st_mode):
        raise CallError(f"{quoted(given)}: there is no folder {quoted(path.parent)}; choose one that exists")
    return path


def check_runs() -> Path:
    """The folder of runs, or a path with nothing there yet."""
    found = _looked_at(RUNS)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise CallError(f"{RUNS}: is not a folder, and runs are put there; move it away")
    return RUNS


def _relative(given: str) -> Path:
    """A path below the working directory, by its text."""
    if not given or len(given) > LONGEST or not given.isprintable():
        raise CallError(f"{quoted(given)}: a path has 1 to {LONGEST} printable characters")
    path, home = Path(given), Path.cwd()
    if path.is_absolute() and path.is_relative_to(home):
        path = path.relative_to(home)
    if path.is_absolute() or ".." in path.parts or path.drive:
        raise CallError(f"{quoted(given)}: leads out of the server's folder; give a path within it, such as data.csv")
    if any(part.startswith(".") for part in path.parts):
        raise CallError(f"{quoted(given)}: files and folders whose names begin with a point are not for agents")
    return path


def _looked_at(path: Path) -> os.stat_result | None:
    """Status of a path, of which no part is a link; None if there is nothing."""
    found = os.lstat(".")
    for count in range(1, len(path.parts) + 1):
        place = Path(*path.parts[:count])
        try:
            found = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CallError(f"{quoted(place)}: cannot be read: {error.strerror}") from None
        _check(place, found)
    return found


def _check(place: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise CallError(f"{quoted(place)}: is a link, which may lead out of the server's folder; put a copy there")
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise CallError(f"{quoted(place)}: is neither a file nor a folder")


def _check_tree(folder: Path) -> None:
    """Raise a `CallError` if anything in a folder is a link or no file, or if there is too much."""
    waiting, count = [folder], 0
    while waiting:
        unreadable = placed(f"{quoted(folder)}: cannot be read", OSError, kind=CallError, told=reason)
        with unreadable, os.scandir(waiting.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                _check(Path(entry.path), found)
                count += 1
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(Path(entry.path))
        if count > MOST_FILES:
            raise CallError(f"{quoted(folder)}: holds more than {MOST_FILES} files; name a smaller folder")


def _around(path: Path) -> str:
    """Names beside a path that does not exist."""
    folder = next((each for each in path.parents if each.is_dir() and not each.is_symlink()), Path())
    names = sorted(quoted(each) for each in folder.iterdir() if not each.name.startswith("."))
    return listed(names, 10) or "nothing"
