import os
import signal
import subprocess
import sys
import threading

import pytest
from llvmlite.binding import ffi

from shine.compiler.llvm import Engine, target
from shine.compiler.llvm.target import LOCK

FORKS = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no process is forked here")
IR = "define i32 @f() {\n  ret i32 7\n}"


def is_free() -> bool:
    """Whether another thread can take it."""
    taken = []

    def take():
        taken.append(LOCK._current.acquire(timeout=0.05))
        if taken[0]:
            LOCK._current.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


def test_it_is_the_lock_that_llvmlite_takes_around_each_call():
    assert target._GUARD is ffi.lib._lock
    assert LOCK._current is ffi.lib._lock._lock
    with LOCK:
        assert not is_free()
        Engine(IR).close()  # the thread that holds it may take it again
    assert is_free()


@FORKS
def test_a_fork_waits_until_another_thread_has_left_llvm_and_the_child_can_enter():
    inside, leave = threading.Event(), threading.Event()
    left = []

    def work():
        with LOCK:
            inside.set()
            leave.wait(30)
            left.append(None)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(30)
    threading.Timer(0.2, leave.set).start()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if left and is_free() and Engine(IR).address("f") else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert is_free()


@FORKS
def test_a_child_whose_fork_did_not_wait_begins_with_a_new_one():
    """As after an interrupt while the fork waited: another thread holds it, and does not run in the child."""
    inside, leave = threading.Event(), threading.Event()

    def work():
        with LOCK:
            inside.set()
            leave.wait(30)

    before, thread = LOCK._current, threading.Thread(target=work)
    thread.start()
    inside.wait(30)
    try:
        LOCK.after_fork_in_parent()
        assert LOCK._current is before and not is_free()
        LOCK.after_fork_in_child()
        assert is_free()
    finally:
        target._GUARD._lock = before
        leave.set()
        thread.join()
    assert is_free()


def test_modules_in_garbage_end_before_their_contexts() -> None:
    code = """if True:
        import gc
        from shine.compiler.llvm.target import parse

        for _ in range(20):
            ring = [parse("define i64 @f(i64 %x) { ret i64 %x }")]
            ring.append(ring)
            del ring
            gc.collect()
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0
