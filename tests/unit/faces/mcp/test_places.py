"""Paths that agents name lead to files below the server's folder, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shine.faces.mcp import places
from shine.faces.mcp.places import CallError, check_private, existing, new_file, run_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are those of POSIX")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's folder, with a table, a secret beside it, and links to the secret."""
    (tmp_path / "secret.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    made = tmp_path / "shared"
    (made / "sub").mkdir(parents=True)
    (made / "data.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    (made / ".env").write_text("token", encoding="utf-8")
    (made / "link.csv").symlink_to(tmp_path / "secret.csv")
    (made / "out").symlink_to(tmp_path)
    (made / "inside.csv").symlink_to(made / "data.csv")
    (made / "broken.csv").symlink_to(tmp_path / "nothing.csv")
    os.mkfifo(made / "pipe.csv")
    (made / "parts").mkdir()
    (made / "parts" / "a.parquet").symlink_to(tmp_path / "secret.csv")
    monkeypatch.chdir(made)
    return made


def test_files_below_the_folder_are_found_by_relative_and_absolute_paths(folder):
    assert existing("data.csv") == existing(f"{folder.resolve()}/data.csv") == Path("data.csv")
    assert existing("./sub") == existing("sub/") == Path("sub")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("../secret.csv", "leads out"), ("sub/../../secret.csv", "leads out"), ("/etc/passwd", "leads out"),
        ("..", "leads out"), (".env", "begin with a point"), ("sub/.git/config", "begin with a point"),
        ("link.csv", "is a link"), ("out/secret.csv", "is a link"), ("inside.csv", "is a link"),
        ("broken.csv", "is a link"), ("pipe.csv", "neither a file nor a folder"), ("parts", "is a link"),
        ("", "printable"), ("a\0b", "printable"), ("a\nb", "printable"), ("x" * 501, "printable"),
        ("nothing.csv", "no such file"), ("data.csv/x", "no such file"), ("x" * 400, "cannot be read"),
    ],
)  # fmt: skip
def test_other_paths_are_refused_with_one_line(folder, given, told):
    with pytest.raises(CallError, match=told) as caught:
        existing(given)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_missing_file_is_answered_with_the_files_beside_it(folder):
    with pytest.raises(CallError, match=r"there is broken\.csv, data\.csv, .*sub"):
        existing("date.csv")


def test_a_folder_of_too_many_files_is_refused(folder, monkeypatch):
    monkeypatch.setattr(places, "MOST_FILES", 3)
    for number in range(4):
        (folder / "sub" / f"{number}").touch()
    with pytest.raises(CallError, match="more than 3 files"):
        existing("sub")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("data.csv", "exists already"), ("link.csv", "is a link"), ("out/new.csv", "is a link"),
        ("none/new.csv", "no folder"), ("new.py", "ends in .csv"), ("../new.csv", "leads out"),
        ("data.csv/new.csv", "no folder"), (".new.csv", "begin with a point"),
    ],
)  # fmt: skip
def test_files_are_written_only_where_none_is(folder, given, told):
    with pytest.raises(CallError, match=told):
        new_file(given, (".csv",))
    assert new_file("sub/new.csv", (".csv",)) == Path("sub/new.csv")


def test_a_run_is_a_folder_with_a_configuration_or_a_result(folder):
    with pytest.raises(CallError, match="is not the folder of a run; past_runs lists them"):
        run_folder("sub")
    (folder / "sub" / "result.json").touch()
    assert run_folder("sub") == Path("sub")


def test_a_server_needs_a_folder_of_the_user_alone(folder):
    check_private(folder)
    folder.chmod(0o777)
    with pytest.raises(CallError, match=r"links could lead the server elsewhere; use a folder of your own"):
        check_private(folder)
    with pytest.raises(CallError, match="no such folder"):
        check_private(folder / "nothing")
    with pytest.raises(CallError, match="is not a folder"):
        check_private(folder / "data.csv")
