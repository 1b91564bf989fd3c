"""Key tables find what `numpy.searchsorted` and `bisect` find."""

from __future__ import annotations

import bisect
import math
import pickle
import sys

import numpy as np
import pytest
from helpers.markers import mostly_slow

from shine.trees import KeyTable

SIZES = (0, 1, 2, 3, 4, 7, 8, 9, 100, 255, 256)
TYPES = ("float64", "float32", "float16", "int64", "int32", "int8", "uint64", "uint32", "uint8")


def sorted_keys(dtype: str, count: int) -> np.ndarray:
    """Different keys with the extremes of their type."""
    rng = np.random.default_rng(count)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        keys = np.unique(rng.normal(size=count).astype(kind) * 40)
        keys[:1], keys[1:][-1:] = -np.inf, np.inf
        return keys
    limits = np.iinfo(kind)
    keys = np.unique(rng.integers(max(limits.min, -9999), min(limits.max, 9999), count).astype(kind))
    keys[:1], keys[1:][-1:] = limits.min, limits.max
    return keys


@pytest.mark.parametrize("dtype", mostly_slow(TYPES, ("float64", "uint64")))
def test_positions_are_those_of_numpy(dtype):
    for size in SIZES:
        keys = sorted_keys(dtype, size)
        table = KeyTable(np.random.default_rng(0).permutation(keys))
        assert table.keys.tolist() == keys.tolist() and len(table) == len(keys)
        for count in (0, 1, 31, 32, 33, 70):
            queries = np.resize(np.concatenate([keys, keys[::2] + keys.dtype.type(1), np.zeros_like(keys[:5])]), count)
            if queries.dtype.kind == "f":
                queries[:3] = np.array([np.nan, -0.0, np.inf])[:count]
            for side in ("left", "right"):
                assert np.array_equal(table.searchsorted(queries, side), np.searchsorted(keys, queries, side))
            at = np.searchsorted(keys, queries)
            known = np.append(keys, np.zeros(1, keys.dtype))[at] == queries
            assert np.array_equal(table.find(queries), np.where(known & (at < len(keys)), at, -1))
            assert [query in table for query in queries.tolist()[:3]] == (table.find(queries) >= 0).tolist()[:3]


def test_one_key_is_found_as_many_are():
    keys = np.random.default_rng(1).normal(size=1000)
    table, listed = KeyTable(keys, np.arange(1000) * 2), sorted(keys.tolist())
    for key in keys.tolist()[:50]:
        place = bisect.bisect_left(listed, key)
        assert table.find(key) == place and table[key] == table.values[place] == 2 * keys.tolist().index(key)
    assert table[np.float64(keys[0])] == 0 and 2.0 not in table


def test_values_belong_to_their_keys():
    table = KeyTable([30, 10, 20], ["c", "a", "b"])
    assert table[30] == "c" and table.get([10, 20, 10]).tolist() == ["a", "b", "a"]
    assert table.get([[10, 15], [30, 99]], "none").tolist() == [["a", "none"], ["c", "none"]]
    pairs = KeyTable([5, 1], [[1.0, 2.0], [3.0, 4.0]])
    assert pairs.get([1, 7, 5], np.nan).shape == (3, 2) and pairs.get([5]).tolist() == [[1.0, 2.0]]
    assert KeyTable([], np.zeros(0)).get([1.0, 2.0], -1).tolist() == [-1, -1]
    assert KeyTable([4, 2])[2] == 1


def test_queries_may_have_any_shape_and_strides():
    table = KeyTable(np.arange(0.0, 100.0, 2.0))
    queries = np.arange(24.0).reshape(4, 6)
    expected = np.searchsorted(table.keys, queries)
    assert np.array_equal(table.searchsorted(queries), expected)
    assert np.array_equal(table.searchsorted(queries.T), expected.T)
    assert np.array_equal(table.searchsorted(queries[::-2, ::3]), expected[::-2, ::3])
    assert table.searchsorted(np.float32(4)) == 2 and table.searchsorted(np.int32(3)) == 2


def test_a_pickled_table_finds_the_same():
    table = pickle.loads(pickle.dumps(KeyTable([3.5, 1.5], ["b", "a"])))
    assert table[1.5] == "a" and table[3.5] == "b" and repr(table) == "<KeyTable of 2 keys of float64>"


def test_keys_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        KeyTable([1, 2]).keys[0] = 3


@pytest.mark.parametrize(
    ("keys", "values", "error", "message"),
    [
        ([1, 2, 1], None, ValueError, "key 1 is there twice, at 0 and 2"),
        ([0.0, -0.0], None, ValueError, "is there twice, at 0 and 1"),
        ([1.0, np.nan], None, ValueError, "key 1 is NaN, which is equal to nothing"),
        ([[1.0]], None, ValueError, "keys have 2 dimensions; give one"),
        (["a", "b"], None, TypeError, "keys are of type <U1; give integers or floating-point numbers"),
        ([True, False], None, TypeError, "keys are of type bool"),
        ([2**70, 1], None, TypeError, "keys are of type object"),
        ([1, 2], [1], ValueError, r"there are 2 keys, but values have the shape \(1,\)"),
    ],
)
def test_bad_keys_are_refused(keys, values, error, message):
    with pytest.raises(error, match=message):
        KeyTable(keys, values)


def test_bad_queries_are_refused():
    table = KeyTable(np.array([1, 5], np.int32))
    with pytest.raises(TypeError, match="queries are of type float64, which keys of int32 cannot hold"):
        table.find([1.5])
    with pytest.raises(TypeError, match="queries are of type int64"):
        table.find(2**40)
    with pytest.raises(TypeError, match="queries are of type <U1"):
        table.find(["a"])
    with pytest.raises(ValueError, match="queries are no array; give an array, or lists of one length"):
        table.find([[1], [2, 3]])
    with pytest.raises(TypeError, match="default=0 does not go with values of <U1"):
        KeyTable([1], ["a"]).get([7], default=0)
    with pytest.raises(TypeError, match="give one key"):
        _ = table[[1, 5]]
    with pytest.raises(KeyError, match="7"):
        _ = table[7]
    with pytest.raises(KeyError, match="9"):
        table.get([1, 9])
    with pytest.raises(ValueError, match="side must be 'left' or 'right', not 'middle'"):
        table.searchsorted([1], "middle")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64", "int32", "uint32"])
def test_one_key_is_found_as_in_an_array_and_leaves_no_reference(dtype):
    kind = np.dtype(dtype).kind
    ends = [-np.inf, -0.5, 0.1, 3.0, np.inf] if kind == "f" else [np.iinfo(dtype).min, 5, 300, np.iinfo(dtype).max]
    table = KeyTable(np.array(ends, dtype))
    for place, key in enumerate(table.keys.tolist()):
        table._place(key)
        before = sys.getrefcount(key), sys.getrefcount(table._words)
        assert all(table._place(key) == place for _ in range(100))
        assert (sys.getrefcount(key), sys.getrefcount(table._words)) == before
    nothing = sys.getrefcount(None)
    if kind == "f":
        assert math.nan not in table
        assert 7.0 not in table
    else:
        assert 6 not in table
        for outside in (int(table.keys[0]) - 1, int(table.keys[-1]) + 1, 1 << 64, -(1 << 64), 1 << 200):
            with pytest.raises((TypeError, OverflowError)):
                table[outside]
    assert sys.getrefcount(None) - nothing < 50


def test_one_key_of_another_class_is_converted():
    class Number(float):
        pass

    table = KeyTable([1.0, 2.0])
    assert table._place(Number(2)) == table._place(2) == table._place(np.float64(2)) == 1
    for wrong in ("2", None, [2.0], 2j):
        with pytest.raises(TypeError):
            table[wrong]


@pytest.mark.parametrize("keys", [[2**64 - 1, -5], [0.5, 2**53 + 1], (-(2**63) + 1, 2**63)])
def test_whole_keys_are_never_rounded(keys):
    with pytest.raises(TypeError, match="would be rounded to a floating-point number"):
        KeyTable(keys)
    assert KeyTable([0.5, 2**53])[2**53] == 1
    assert KeyTable([2**64 - 1, 5])[2**64 - 1] == 0
