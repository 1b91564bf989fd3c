"""Scripts whose `map` sends individuals to other processes compute what one process computes.

The script is a file, which the processes of a pool import, and a process of its own, so that a hang becomes a failure.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import functools, multiprocessing, operator, pickle, random, signal, sys
import numpy as np
from deap import algorithms, base, creator, gp, tools
import shine.deap

def any_share():
    return random.random()

def spread(individual, predictions):
    return float(np.ptp(predictions))

pset = gp.PrimitiveSet("MAIN", 1)
for function, arity in ((operator.add, 2), (operator.mul, 2), (operator.neg, 1)):
    pset.addPrimitive(function, arity)
pset.addEphemeralConstant("any_share", any_share)
creator.create("Several", base.Fitness, weights=(-1.0, -1.0, 1.0))
creator.create("Formula", gp.PrimitiveTree, fitness=creator.Several)
X = np.linspace(-1, 1, 50)
evaluator = shine.deap.CompiledEvaluator(pset, X, X**3 + X, objectives=("mse", len, spread), threads=2)
toolbox = base.Toolbox()
toolbox.register("tree", gp.genHalfAndHalf, pset=pset, min_=1, max_=3)
toolbox.register("individual", tools.initIterate, creator.Formula, toolbox.tree)
toolbox.register("population", tools.initRepeat, list, toolbox.individual)
toolbox.register("evaluate", evaluator.evaluate)
toolbox.register("select", tools.selNSGA2)
toolbox.register("mate", gp.cxOnePoint)
toolbox.register("mutate", gp.mutUniform, expr=toolbox.tree, pset=pset)
toolbox.decorate("mate", gp.staticLimit(len, 30))
toolbox.decorate("mutate", gp.staticLimit(len, 30))

def run(map_, generations=3):
    toolbox.register("map", map_)
    random.seed(3)
    start = toolbox.population(n=20)
    last, _ = algorithms.eaMuPlusLambda(start, toolbox, 20, 20, 0.6, 0.3, generations, verbose=False)
    return [(str(each), each.fitness.values) for each in last]

def pickling(function, *items):
    "Sends the function and each item as the libraries of clusters do."
    tasks = [pickle.dumps((function, arguments)) for arguments in zip(*items)]
    results = (call(*arguments) for call, arguments in map(pickle.loads, tasks))
    return [pickle.loads(pickle.dumps(result)) for result in results]
"""

COMPARE = """
if __name__ == "__main__":
    expected = run(evaluator.map)
    assert run(map) == expected
    assert run(pickling) == expected
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert run(pool.map) == expected
        assert run(functools.partial(pool.imap, chunksize=5)) == expected
    print("the same")
"""

ENDLESS = """
if __name__ == "__main__":
    # A worker that an interrupt ends may take the pool's lock with it, so workers leave interrupts to the script.
    ignore = functools.partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with multiprocessing.get_context(sys.argv[1]).Pool(2, initializer=ignore) as pool:
        run(pool.map, 1)
        print("running", flush=True)
        try:
            run(pool.map, 10**6)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""

METHODS = [method for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_pools_compute_what_one_process_computes(method, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT + COMPARE)
    command = [sys.executable, "script.py", method]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.stdout, ended.returncode) == ("the same\n", 0), ended.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a signal to a group of processes")
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_ends_a_run_in_a_pool(method, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT + ENDLESS)
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    script = subprocess.Popen([sys.executable, "script.py", method], start_new_session=True, **options)
    try:
        assert script.stdout.readline() == "running\n"
        time.sleep(0.3)
        os.killpg(script.pid, signal.SIGINT)  # as a terminal does
        out, _ = script.communicate(timeout=60)
        assert "interrupted" in out
    finally:
        if script.poll() is None:
            os.killpg(script.pid, signal.SIGKILL)


@pytest.mark.slow
def test_the_script_of_the_recipes_runs(tmp_path):
    page = (Path(__file__).parents[4] / "docs" / "deap-recipes.md").read_text(encoding="utf-8")
    script = page.partition('```python title="pool.py"\n')[2].partition("```")[0]
    (tmp_path / "pool.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "pool.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.stdout, ended.returncode) == ("True\n", 0), ended.stderr[-2000:]
