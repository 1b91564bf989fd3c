"""The explicit method: Runge-Kutta of order 5 with an error estimate of order 4 and dense output.

The pair is that of Dormand and Prince (1980), the dense output of order 4, the choice of steps and the test for
stiffness are those of Hairer, Norsett and Wanner, *Solving Ordinary Differential Equations I* (1993), sections II.4 to
II.6, and II (1996), section IV.2. Sensitivities are integrated by the same steps, so that they are the derivatives of
what is computed.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, number
from shine.compiler.codegen.vecmath import functions as vecmath
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.evaluate.rollouts.memory import Array, Variable, endless, integer, larger, real, smaller
from shine.evaluate.rollouts.work import Run, find_piece

TIMES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""Times and weights of the stages; the last stage is the step."""
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
DENSE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)
"""Weights of the last term of the dense output."""

REACHED, TOO_SMALL, TOO_MANY, STIFF = range(4)
"""Ends of a method: all times reached; steps too small, as in front of a pole; too many steps; a stiff system, where an
explicit method is the wrong one."""

STIFF_STEPS, CALM_STEPS = 15, 6
"""Steps near the border that make a system stiff, and steps away from it after which counting begins again."""

_SAFETY, _LEAST, _MOST = 0.9, 0.2, 10.0


def emit_explicit(module: ir.Module) -> ir.Function:
    """Emit ``i64 explicit(item, memory)``, which takes steps from the time in the memory; the result is the status.

    `vectors[0]` is the extended state there. Output from the row ``next`` of the head is written.
    """
    function = declare(module, "shine.explicit", I64, [POINTER, POINTER], ("item", "memory"))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    run = Run(build, *function.args)
    state, stages, argument, after = run.vectors[0], run.vectors[1:8], run.vectors[8], run.vectors[9]
    times, count = run.item.array("times"), run.item.whole("count")
    end, span = times[count - 1], times[count - 1] - times[0]
    time, step = Variable(run.head.real("time")), Variable(run.head.real("step"))
    last, status = Variable(real(build, 1e-4)), Variable(integer(build, REACHED))
    near, calm = Variable(integer(build, 0)), Variable(integer(build, 0))
    most = Variable(real(build, _MOST))
    run.rates(time.get(), state, stages[0])
    with build.if_then((~(step.get() > 0.0)).value):
        step.set(first_step(run, span))
    with endless(build) as loop:
        loop.leave_if(run.head.whole("next") >= count)
        steps = run.head.whole("steps")
        status.set(integer(build, TOO_MANY))
        loop.leave_if(steps >= run.item.whole("most_steps"))
        run.head.put("steps", steps + 1)
        now = time.get()
        goal = next_stop(run, now, end)
        left = goal - now
        reaches = left <= step.get() * 1.01
        h = reaches.where(left, step.get())
        status.set(integer(build, TOO_SMALL))
        loop.leave_if(is_too_small(h, now, span) & ~reaches)
        loop.leave_if(~(h > 0.0))
        for number_, weights in enumerate(STAGES):
            if number_:
                target = after if number_ == len(STAGES) - 1 else argument
                terms = [(h * weight, stages[i]) for i, weight in enumerate(weights) if weight]
                run.combine(target, state, terms)
                run.rates(now + h * TIMES[number_], target, stages[number_])
        # The argument of the sixth stage is still there: the test for stiffness compares both at the end of the step.
        product = _stiffness(run, h, (after, argument), (stages[6], stages[5]))
        run.combine(argument, None, [(h * weight, stages[i]) for i, weight in enumerate(ERROR) if weight])
        error = run.error_norm(state, after, argument)
        good = error <= 1.0
        with build.if_else(good.value) as (accepted, rejected):
            with accepted:
                then = reaches.where(goal, now + h)
                _write_dense(run, (now, h, then))
                run.note_sizes(after)
                run.combine(state, None, [(real(build, 1.0), after)])
                time.set(then)
                # Exponents of the error of a step and of the one before in the choice of the next step
                factor = power(error, -0.17) * power(last.get(), 0.04) * _SAFETY
                # A step that was cut short tells nothing about a larger one than the one before it.
                grown = h * smaller(larger(factor, _LEAST), most.get())
                step.set((reaches & (h < step.get())).where(larger(grown, step.get()), grown))
                last.set(larger(error, 1e-4))
                most.set(real(build, _MOST))
                # Step times the largest eigenvalue near the border of stability, 3.3: steps of a stiff system hover
                # below it.
                suspect = product > 2.0
                calm.set(suspect.where(integer(build, 0), calm.get() + 1))
                kept = (calm.get() >= CALM_STEPS).where(integer(build, 0), near.get())
                near.set(suspect.where(near.get() + 1, kept))
                with build.if_else((run.controls > 0).value) as (steered, free):
                    with steered:
                        find_piece(run, then)
                        run.rates(then, state, stages[0])
                    with free:
                        run.combine(stages[0], None, [(real(build, 1.0), stages[6])])
            with rejected:
                factor = larger(power(error, -0.2) * _SAFETY, _LEAST)
                # After a failure, even one without a number, steps do not grow at once.
                step.set(h * (factor <= 1.0).where(factor, _LEAST))
                most.set(real(build, 1.0))
        status.set(integer(build, STIFF))
        loop.leave_if((near.get() >= STIFF_STEPS) & run.item.whole("method").equals(0))
        status.set(integer(build, REACHED))
    run.head.put("time", time.get())
    run.head.put("step", step.get())
    build.ret(status.get().value)
    return function


def is_too_small(h: Lanes, now: Lanes, span: Lanes) -> Lanes:
    """Whether a step leads nowhere."""
    # Smallest step in units of the time, and of the span
    return ~(h > larger(now.magnitude() * 1e-15, span * 1e-20))


def next_stop(run: Run, now: Lanes, end: Lanes) -> Lanes:
    """The end, or the next break of controls that steps must not cross."""
    piece = run.head.whole("piece") + 1
    inner = (run.item.whole("kinked") > 0) & (piece < run.item.whole("last_break"))
    return inner.where(smaller(end, run.item.array("breaks")[piece]), end)


def first_step(run: Run, span: Lanes) -> Lanes:
    """A hundredth of the shortest time in which a state changes by its own size."""
    build, state, rates = run.build, run.vectors[0], run.vectors[1]
    with counted(build, number(0), run.states.value, carried=[(span * 0.01).value]) as loop:
        here = (state[loop.index] / rates[loop.index]).magnitude() * 0.01
        known = Lanes(build, loop.values[0])
        loop.results = [(here > 0.0).where(smaller(known, here), known).value]
    return larger(Lanes(build, loop.values[0]), span * 1e-6)


def power(base: Lanes, exponent: float) -> Lanes:
    """A power; of 0 the one that makes a step grow."""
    floor = larger(base.constant(1e-10), base)
    return Lanes(base.builder, vecmath.call(base.builder, "pow", floor.value, base.constant(exponent).value))


def _stiffness(run: Run, h: Lanes, states: tuple[Array, Array], rates: tuple[Array, Array]) -> Lanes:
    """Step times an estimate of the largest eigenvalue, from two states at the end of a step and their rates."""
    build = run.build
    zero = real(build, 0.0).value
    with counted(build, number(0), run.states.value, carried=[zero, zero]) as loop:
        unit = 1.0 / (larger(run.sizes[loop.index], states[0][loop.index].magnitude()) + 1e-300)
        parts = [(pair[0][loop.index] - pair[1][loop.index]) * unit for pair in (rates, states)]
        loop.results = [
            (Lanes(build, value) + part * part).value for value, part in zip(loop.values, parts, strict=True)
        ]
    above, below = (Lanes(build, value) for value in loop.values)
    return h * (above / (below + 1e-300)).sqrt()


def _write_dense(run: Run, step: tuple[Lanes, Lanes, Lanes]) -> None:
    """Write the output at all times that a step has passed."""
    build = run.build
    now, h, then = step
    state, stages, scratch = run.vectors[0], run.vectors[1:8], run.vectors[8]
    times, count = run.item.array("times"), run.item.whole("count")
    with endless(build) as loop:
        following = run.head.whole("next")
        loop.leave_if(following >= count)
        at = times[following]
        loop.leave_if(at > then)
        share = (at - now) / h
        rest = 1.0 - share
        terms = []
        for i, (own, dense) in enumerate(zip((*STAGES[6], 0.0), DENSE, strict=True)):
            if own or dense:
                first, last = float(i == 0), float(i == 6)
                inner = share * (rest * dense + (2 * own - first - last)) + (first - own)
                terms.append((h * share * (rest * inner + own), stages[i]))
        run.combine(scratch, state, terms)
        run.write(following, scratch)
        run.head.put("next", following + 1)
