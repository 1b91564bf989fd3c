"""Native functions as objects of CPython."""

import gc
import sys
import weakref

import pytest

from shine.base.errors import CompilationError
from shine.compiler.llvm import Engine
from shine.compiler.llvm.builtins import builtin, interpreter_function

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
