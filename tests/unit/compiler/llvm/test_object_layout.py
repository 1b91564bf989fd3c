"""Native code reads Python's objects only where their layout is known; elsewhere the ordinary way gives the same."""

import gc
import sys
import weakref
from types import SimpleNamespace

import pytest

import shine
from shine.base.errors import CompilationError
from shine.compiler.llvm import Engine, object_layout
from shine.compiler.llvm.object_layout import VERSIONS, builtin, interpreter_function, is_known_python, is_readable
from shine.evaluate.kernels import individuals

OTHERS = {
    "PyPy": {"implementation": SimpleNamespace(name="pypy")},
    "newer": {"version_info": (VERSIONS[1][0], VERSIONS[1][1] + 1, 0)},
    "free-threaded": {"_is_gil_enabled": lambda: False},
}


@pytest.fixture(params=OTHERS)
def elsewhere(request, monkeypatch):
    """As on another interpreter."""
    facts = {
        "implementation": SimpleNamespace(name="cpython"),
        "version_info": (*VERSIONS[1], 0),
        **OTHERS[request.param],
    }

    def switch():
        monkeypatch.setattr(object_layout, "sys", SimpleNamespace(**facts))
        forget()

    yield switch
    monkeypatch.undo()
    forget()


def forget():
    is_readable.cache_clear()
    individuals._has_known_layout.cache_clear()
    individuals._reader.cache_clear()


def test_other_interpreters_are_not_read(elsewhere):
    elsewhere()
    assert not is_known_python() and not is_readable()
    assert individuals.reader_of([1.0, 2.0]) is None


def test_results_there_are_the_same(elsewhere):
    def results():
        table = shine.trees.KeyTable([3.0, 1.0, 2.0])
        objective = shine.deap.CompiledObjective("sum(v*v for v in x)")
        return table[2.0], 4.0 in table, [each[0] for each in objective.evaluate_all([[1.0, 2.0], [3.0, 4.0]])]

    wanted = results()
    elsewhere()
    assert results() == wanted == (2, False, [5.0, 25.0])


LAST = f"""
define ptr @last(ptr %self, ptr %arguments, i64 %count) {{
  %is_empty = icmp eq i64 %count, 0
  br i1 %is_empty, label %error, label %some
error:
  call void inttoptr (i64 {interpreter_function("PyErr_NoMemory")} to ptr)()
  ret ptr null
some:
  %place = sub i64 %count, 1
  %at = getelementptr ptr, ptr %arguments, i64 %place
  %found = load ptr, ptr %at
  call void inttoptr (i64 {interpreter_function("Py_IncRef")} to ptr)(ptr %found)
  ret ptr %found
}}
"""


@pytest.mark.slow
def test_it_takes_and_returns_objects_and_keeps_its_code_as_long_as_it_lives():
    engine = Engine(LAST)
    with pytest.raises(CompilationError, match="no function 'first'"):
        builtin(engine, "first")
    last, alive = builtin(engine, "last"), weakref.ref(engine)
    del engine
    gc.collect()
    thing = object()
    count = sys.getrefcount(thing)
    assert all(last(1, "a", thing) is thing for _ in range(100)) and sys.getrefcount(thing) == count
    with pytest.raises(MemoryError):
        last()
    with pytest.raises(TypeError, match="no keyword arguments"):
        last(x=1)
    del last
    gc.collect()
    assert alive() is None
