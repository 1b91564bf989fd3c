"""Folders that others can change: nothing in them is read, one warning says why, and results are still right."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from shine.base import files
from shine.compiler.llvm import cache, cached

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no owners and modes")
ROOT_ALONE = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
STRANGER = 12345


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A private folder that is the cache, two below the test's own."""
    cache._warn.cache_clear()
    place = tmp_path / "above" / "cache"
    place.mkdir(parents=True)
    place.chmod(0o700)
    place.parent.chmod(0o755)
    monkeypatch.setenv("SHINE_CACHE_DIR", str(place))
    return place


def is_kept() -> bool:
    """Whether an entry is kept for the next time; it has the right bytes in any case."""
    made = []

    def make() -> bytes:
        made.append(None)
        return b"content"

    assert [cached(("x",), make) for _ in range(2)] == [b"content"] * 2
    return len(made) == 1


def changed(folder: Path, above_too: bool, mode: int, owner: int = -1) -> None:
    place = folder.parent if above_too else folder
    os.chown(place, owner, -1)
    place.chmod(mode)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750, 0o711])
def test_a_folder_that_only_its_owner_may_write_is_used(folder, mode):
    folder.chmod(mode)
    assert is_kept()


EXPOSED = {
    "anybody may write to it": ((False, 0o777), "others may write to it; take that right from them"),
    "in a sticky folder others may add entries": ((False, 0o1777), "others may write to it"),
    "a group may write to it": ((False, 0o770), "others may write to it"),
    "anybody may replace it": ((True, 0o777), "above, and can replace it; take that right from them"),
    "a group may replace it": ((True, 0o775), "above, and can replace it"),
}


@pytest.mark.parametrize("case", EXPOSED)
def test_a_folder_that_others_can_change_is_not_used_which_is_said_once(folder, case, monkeypatch):
    monkeypatch.setattr(files, "_is_of_one", lambda found, user: False)
    arguments, reason = EXPOSED[case]
    changed(folder, *arguments)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not is_kept()
        assert not is_kept()
    (only,) = caught
    assert only.category is RuntimeWarning
    assert str(folder) in str(only.message) and reason in str(only.message)
    assert "SHINE_CACHE_DIR" in str(only.message)
    assert list(folder.iterdir()) == []


@ROOT_ALONE
@pytest.mark.parametrize("above_too", [False, True])
def test_a_folder_of_another_user_or_in_one_is_not_used(folder, above_too):
    changed(folder, above_too, 0o755, STRANGER)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {STRANGER}.* choose another folder"):
        assert not is_kept()
    assert list(folder.iterdir()) == []


def test_a_folder_in_a_sticky_one_is_used(folder):
    changed(folder, True, 0o1777)
    assert is_kept()


@ROOT_ALONE
def test_a_link_of_another_user_in_a_sticky_folder_is_not_followed(folder, monkeypatch):
    changed(folder, True, 0o1777)
    link = folder.parent / "link"
    link.symlink_to(folder)
    monkeypatch.setenv("SHINE_CACHE_DIR", str(link))
    assert is_kept()
    os.lchown(link, STRANGER, -1)
    cached_before = sorted(folder.iterdir())
    with pytest.warns(RuntimeWarning, match=f"link belongs to user {STRANGER}, who can replace it"):
        assert not is_kept()
    assert sorted(folder.iterdir()) == cached_before


def test_a_group_of_the_user_alone_is_the_user(folder):
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        pytest.skip("the system does not know this user")
    if group.gr_name != user.pw_name or set(group.gr_mem) - {user.pw_name}:
        pytest.skip("this user has no group of its own")
    os.chown(folder.parent, -1, user.pw_gid)
    changed(folder, True, 0o775)
    assert is_kept()


def test_missing_folders_are_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "a" / "b" / "c"))
    before = os.umask(0)
    try:
        assert is_kept()
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3
    assert {path.stat().st_mode & 0o777 for path in made[-1].iterdir()} == {0o600}


def test_where_there_are_no_owners_entries_are_authenticated_all_the_same(folder, monkeypatch):
    monkeypatch.setattr(files, "HAS_OWNERS", False)
    folder.chmod(0o777)
    assert is_kept()
    for path in folder.iterdir():
        if path.name != ".secret":
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert is_kept()  # it was made once more


def test_a_place_with_a_null_character_is_no_error(monkeypatch):
    cache._warn.cache_clear()
    monkeypatch.setattr(cache, "cache_folder", lambda: Path("a\0b"))
    with pytest.warns(RuntimeWarning, match="null"):
        assert not is_kept()
