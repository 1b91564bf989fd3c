"""Forked and other processes compute correctly, whatever was used before the fork or is in use during it.

Each scene is a process of its own, so that a hang becomes a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.markers import mostly_slow

import shine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")

STAGE = """
import multiprocessing, operator, os, sys, threading, time, traceback
import numpy as np
import shine
from deap import base, gp
from shine.deap import CompiledEvaluator

rng = np.random.default_rng(0)
X = rng.uniform(1, 2, (300_000, 2))
y = X[:, 0] * X[:, 1]
SOURCES = ["x0*x1", "x0 + x1", "x0 - x1", "x0", "x1", "x0*x0", "x1*x1", "x0 + x0", "x1 + 1", "x0*2"]
VALUES = [X[:, 0] * X[:, 1], X[:, 0] + X[:, 1], X[:, 0] - X[:, 1], X[:, 0], X[:, 1], X[:, 0]**2, X[:, 1]**2,
          X[:, 0] * 2, X[:, 1] + 1, X[:, 0] * 2]
LOSSES = np.array([np.mean((value - y)**2) for value in VALUES])
population = shine.Population.from_sources(SOURCES, ("x0", "x1"))
pset = gp.PrimitiveSet("MAIN", 2)
pset.addPrimitive(operator.mul, 2)
pset.addPrimitive(operator.add, 2)
TREES = [gp.PrimitiveTree.from_string(text, pset) for text in ("mul(ARG0, ARG1)", "add(ARG0, ARG1)") * 5]
evaluator = shine.Evaluator(X, y, threads=2)
deap_evaluator = CompiledEvaluator(pset, X, y, threads=2)
kernel = shine.jit("a*b + 1")
gradient = shine.grad("a*b + a")

def evaluated():
    assert np.allclose(evaluator(population), LOSSES, rtol=1e-9, atol=1e-12)

def deap_evaluated():
    assert np.allclose(np.ravel(deap_evaluator(TREES)), np.tile(LOSSES[:2], 5), rtol=1e-9, atol=1e-12)

def called():
    assert kernel(2.0, 3.0) == 7.0
    assert np.array_equal(kernel(X[:, 0], X[:, 1]), X[:, 0] * X[:, 1] + 1)
    assert gradient(2.0, 3.0) == (4.0, 2.0)

def compiled(seed=0):
    assert shine.jit(f"a*{seed + 1} + b")(2.0, 3.0) == 2.0*(seed + 1) + 3

def evolved():
    options = {"population": 50, "generations": 2, "stop_loss": 0.0, "seconds": 60, "threads": 2}
    found = shine.evolve(X[:50_000], y[:50_000], features=("x0", "x1"), **options)
    assert found.best.loss < 1e-20, found.best

def everything():
    for work in (evaluated, deap_evaluated, called, compiled):
        work()

def forked(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, work

def one_tree(index):
    return deap_evaluator.evaluate(TREES[index % 10])[0]

def pooled(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert np.allclose(pool.map(one_tree, range(4)), LOSSES[[0, 1, 0, 1]], rtol=1e-9, atol=1e-12)
        assert np.allclose(pool.apply(evaluator, (population,)), LOSSES, rtol=1e-9, atol=1e-12)
        fitnesses = pool.map(deap_evaluator.evaluate, TREES[:2])
        assert np.allclose(np.ravel(fitnesses), LOSSES[:2], rtol=1e-9, atol=1e-12)
        assert pool.starmap(kernel, [(2.0, 3.0)] * 4) == [7.0] * 4
        assert pool.starmap(gradient, [(2.0, 3.0)] * 4) == [(4.0, 2.0)] * 4

def meanwhile(work, count, child):
    "Fork again and again while another thread works."
    over, failures = threading.Event(), []
    def go_on():
        number = 0
        try:
            while not over.is_set():
                work(number)
                number += 1
        except BaseException as error:
            failures.append(error)
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for number in range(count):
            time.sleep(0.001 * (number % 7))
            forked(child)
    finally:
        over.set()
        thread.join()
    assert not failures, failures

if __name__ == "__main__":
"""

SCENES = {
    "before use": "forked(everything); everything()",
    "nested": "everything(); forked(lambda: (everything(), forked(lambda: (everything(), forked(everything)))))",
    "the parent goes on": "everything(); forked(everything); everything(); forked(everything); everything()",
    "while a thread evaluates": "meanwhile(lambda number: evaluated(), 8, everything)",
    "while a thread evaluates for DEAP": "meanwhile(lambda number: deap_evaluated(), 20, deap_evaluated)",
    "while a thread compiles": "meanwhile(compiled, 10, lambda: (called(), compiled(5)))",
    "a fork pool before use": 'pooled("fork")',
    "a spawn pool": 'everything(); pooled("spawn")',
    "a forkserver pool": 'everything(); pooled("forkserver")',
    "a search in the child": "everything(); forked(evolved)",
    "a search in the child while a thread searches": "evolved(); meanwhile(lambda number: evolved(), 2, evolved)",
    "the child ends as Python does": """everything()
    child = os.fork()
    if child == 0:
        everything()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0""",
}


FAST = ["the parent goes on", "while a thread evaluates for DEAP", "a fork pool before use", "a search in the child"]


@pytest.mark.slow
@pytest.mark.parametrize("scene", mostly_slow(SCENES, FAST))
def test_every_process_computes_correctly(scene, tmp_path):
    pytest.importorskip("deap")
    script = tmp_path / "scene.py"
    script.write_text(f"{STAGE}    {SCENES[scene]}\n")
    # Python 3.12 and later warn when a process with threads forks.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(shine.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stderr[-3000:]) == (0, "")
