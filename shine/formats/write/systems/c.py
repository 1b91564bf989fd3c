"""Systems as C programs with a Runge-Kutta method of their own, and maps with a loop."""

from __future__ import annotations

from shine.formats.write.c import Writer, commented, for_comment
from shine.formats.write.systems.system import System, filled
from shine.lang.forms.names import c_identifier

_PROGRAM = """\
/*
@COMMENT@
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
@STRING@
#if defined(__FAST_MATH__)
#error "without IEEE 754 the formulas have other values: compile without -ffast-math"
#endif

enum { @NAME@_n_states = @N_STATES@, @NAME@_n_controls = @N_CONTROLS@ };
@RUNS@
@FUNCTIONS@
/* @WHAT@. */
void @NAME@(double t, const double *states, const double *controls, @THE_RUN@double *rates)
{
@RATES@}

/* Writes the controls at one time; `context` is what the caller of the integration gave. */
typedef void (*@NAME@_inputs)(double t, double *controls, void *context);

static void @NAME@_at(double t, const double *states, @NAME@_inputs inputs, void *context, @THE_RUN@double *rates)
{
    double controls[@NAME@_n_controls + 1];
    if (inputs) {
        inputs(t, controls, context);
    }
    @NAME@(t, states, controls, @OF_RUN@rates);
}

@RUN@@MAIN@"""

_INTEGRATE = """\
/*
 * Replaces the states at time t by those at time `end`, with an error of a step below the tolerance times the largest
 * value of each state so far. Returns 0, or 1 if the steps become too small or too many, as before an explosion; then
 * the states are those reached. inputs may be NULL if there are no controls. The method is the pair of order 5 and 4 of
 * Dormand and Prince (1980), for systems that are not stiff.
 */
int @NAME@_integrate(double t, double end, double *states, double tolerance, @THE_RUN@@NAME@_inputs inputs,
                     void *context)
{
    static const double nodes[7] = {0.0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0, 1.0};
    static const double weights[7][6] = {
        {0.0},
        {1.0 / 5},
        {3.0 / 40, 9.0 / 40},
        {44.0 / 45, -56.0 / 15, 32.0 / 9},
        {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
        {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
        {35.0 / 384, 0.0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
    };
    static const double errors[7] = {
        71.0 / 57600, 0.0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40
    };
    double rates[7][@NAME@_n_states], next[@NAME@_n_states], sizes[@NAME@_n_states];
    double step = (end - t) / 100.0;
    long count;
    int i, j, k;
    for (i = 0; i < @NAME@_n_states; i++) {
        sizes[i] = fabs(states[i]);
    }
    @NAME@_at(t, states, inputs, context, @OF_RUN@rates[0]);
    for (count = 0; t < end; count++) {
        double error = 0.0, factor;
        const int last = t + step * (1.0 + 1e-12) >= end;
        if (last) {
            step = end - t;
        }
        if (count == 10000000 || t + step == t) {
            return 1;
        }
        for (j = 1; j < 7; j++) {
            for (i = 0; i < @NAME@_n_states; i++) {
                double sum = 0.0;
                for (k = 0; k < j; k++) {
                    sum += weights[j][k] * rates[k][i];
                }
                next[i] = states[i] + step * sum;
            }
            @NAME@_at(t + nodes[j] * step, next, inputs, context, @OF_RUN@rates[j]);
        }
        for (i = 0; i < @NAME@_n_states; i++) {
            const double size = fmax(fmax(sizes[i], fabs(next[i])), step * fabs(rates[0][i]));
            double sum = 0.0;
            for (k = 0; k < 7; k++) {
                sum += errors[k] * rates[k][i];
            }
            if (sum != 0.0) {
                error = fmax(error, fabs(step * sum) / (tolerance * size));
            }
            if (!isfinite(next[i]) || !isfinite(rates[6][i])) {
                error = INFINITY;
                break;
            }
        }
        if (error <= 1.0) {
            t = last ? end : t + step;
            for (i = 0; i < @NAME@_n_states; i++) {
                states[i] = next[i];
                sizes[i] = fmax(sizes[i], fabs(next[i]));
                rates[0][i] = rates[6][i];
            }
        }
        factor = error > 0.0 ? 0.9 * pow(error, -0.2) : 5.0;
        step *= factor < 0.2 ? 0.2 : factor > 5.0 ? 5.0 : factor;
    }
    return 0;
}
"""

_ITERATE = """\
/*
 * Replaces the states at step `step` by those at step `end`. Returns 0, or 1 if they explode; inputs may be NULL if
 * there are no controls.
 */
int @NAME@_iterate(long step, long end, double *states, @THE_RUN@@NAME@_inputs inputs, void *context)
{
    double next[@NAME@_n_states];
    int i;
    for (; step < end; step++) {
        @NAME@_at((double)step, states, inputs, context, @OF_RUN@next);
        for (i = 0; i < @NAME@_n_states; i++) {
            states[i] = next[i];
            if (!isfinite(next[i])) {
                return 1;
            }
        }
    }
    return 0;
}
"""


_MAIN = """
#ifdef @CAPITALS@_MAIN
int main(int count, char **words)
{
    double states[@NAME@_n_states];
@DECLARED@
    int i;
    if (count != @NAME@_n_states + @N_WORDS@ + @N_TIMES@) {
        fprintf(stderr, "give @WORDS@: %s\\n", "@STARTS@ @TIMES@@RUN_WORD@");
        return 2;
    }
@FIND_RUN@    for (i = 0; i < @NAME@_n_states; i++) {
        states[i] = strtod(words[i + 1], NULL);
    }
@READ@
    printf("@HEADING@\\n");
@LOOP@
        for (i = 0; i < @NAME@_n_states; i++) {
            printf(",%.17g", states[i]);
        }
        printf("\\n");
    }
    return 0;
}
#endif
"""

_OF_FLOW = {
    "N_TIMES": "2",
    "TIMES": "END STEP",
    "DECLARED": """\
    double end, step;
    long row, rows;""",
    "READ": """\
    end = strtod(words[@NAME@_n_states + 1], NULL);
    step = strtod(words[@NAME@_n_states + 2], NULL);
    rows = (long)floor(end / step + 0.5);""",
    "LOOP": """\
    for (row = 0; row <= rows; row++) {
        const double from = (double)(row - 1) * step;
        if (row > 0 && @NAME@_integrate(from, (double)row * step, states, 1e-10, @OF_RUN@NULL, NULL)) {
            fprintf(stderr, "the states explode before time %g\\n", (double)row * step);
            return 1;
        }
        printf("%.17g", (double)row * step);""",
}

_OF_MAP = {
    "N_TIMES": "1",
    "TIMES": "END",
    "DECLARED": "    long step, end;",
    "READ": "    end = strtol(words[@NAME@_n_states + 1], NULL, 10);",
    "LOOP": """\
    for (step = 0; step <= end; step++) {
        if (step > 0 && @NAME@_iterate(step - 1, step, states, @OF_RUN@NULL, NULL)) {
            fprintf(stderr, "the states explode before step %ld\\n", step);
            return 1;
        }
        printf("%ld", step);""",
}

_NOTE = """

Written by Shine. {use} Compile without -ffast-math."""


_RUNS = """
/* Names of the runs, on whose number, from 0, constants depend. */
enum { @NAME@_n_runs = @N_RUNS@ };
const char *const @NAME@_runs[@NAME@_n_runs] = {@NAMES@};
"""

_FIND_RUN = """\
    int run = 0;
    while (run < @NAME@_n_runs && strcmp(words[count - 1], @NAME@_runs[run])) {
        run++;
    }
    if (run == @NAME@_n_runs) {
        fprintf(stderr, "no run has the name %s\\n", words[count - 1]);
        return 2;
    }
"""


def _of_runs(system: System, name: str) -> dict[str, str]:
    """The parts of a program that know the run."""
    words = (
        "the states at step 0 and the last step"
        if system.is_map
        else "the states at time 0, the last time and the step"
    )
    if not system.runs:
        blanks = dict.fromkeys(["THE_RUN", "OF_RUN", "RUNS", "FIND_RUN", "RUN_WORD", "STRING"], "")
        return {"N_WORDS": "1", "WORDS": words, **blanks}
    # Octal digits end after three, so that any byte may follow.
    names = [
        '"'
        + "".join(
            chr(byte) if 31 < byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in run.encode()
        )
        + '"'
        for run in system.runs
    ]
    return {
        "N_WORDS": "2",
        "WORDS": f"{words}, and the name of the run",
        "THE_RUN": "int run, ",
        "OF_RUN": "run, ",
        "RUNS": filled(_RUNS, {"N_RUNS": str(len(names)), "NAMES": ", ".join(names), "NAME": name}),
        "FIND_RUN": filled(_FIND_RUN, {"NAME": name}),
        "RUN_WORD": " RUN",
        "STRING": "" if system.inputs else "#include <string.h>\n",
    }


def c_program(system: System, name: str = "f") -> str:
    """C99 source with the right-hand side, a function that integrates it, and a main program if there are no controls.

    An `ExportError` if a formula calls a function without a definition.
    """
    name = c_identifier(name)
    functions: list[str] = []
    rates: list[str] = []
    known = {parameter: f"states[{place}]" for place, parameter in enumerate(system.states)}
    known |= {parameter: f"controls[{place}]" for place, parameter in enumerate(system.inputs)}
    if system.runs:
        known[system.controls[-1]] = "(double)run"
    known[system.time] = "t"
    used: set[str] = set()
    for place, tree in enumerate(system.trees):
        writer = Writer(tree, f"{name}_rate{place}", {})
        functions += writer.definitions("static ")
        given = [known[parameter] for parameter in tree.parameters]
        used |= {argument.removeprefix("(double)").partition("[")[0] for argument in given}
        rates.append(f"    rates[{place}] = {writer.name}({', '.join(given)});\n")
    rates[:0] = [
        f"    (void){argument};\n"
        for argument in ("t", "states", "controls", "run")[: 4 if system.runs else 3]
        if argument not in used
    ]
    use = (
        f"Use {name}_{'iterate' if system.is_map else 'integrate'}."
        if system.inputs
        else f"As a program: cc -O2 -D{name.upper()}_MAIN @FILE@.c -lm -o {name}."
    )
    if system.stiff:
        use += " The fit took implicit steps, as stiff systems need: those of this method are many."
    values = {
        "COMMENT": commented(for_comment(system.text) + _NOTE.format(use=use)),
        "FUNCTIONS": "\n".join(functions),
        "RATES": "".join(rates),
        "RUN": _ITERATE if system.is_map else _INTEGRATE,
        "MAIN": "" if system.inputs else _MAIN,
        **(_OF_MAP if system.is_map else _OF_FLOW),
        "WHAT": "States a step later" if system.is_map else "Rates of the states at one time",
        "N_STATES": str(len(system.states)),
        "N_CONTROLS": str(len(system.inputs)),
        **_of_runs(system, name),
        "STARTS": " ".join(f"{c_identifier(state).upper()}0" for state in system.states),
        "HEADING": ",".join(c_identifier(column) for column in (system.time, *system.states)),
        "CAPITALS": name.upper(),
        "NAME": name,
    }
    return filled(_PROGRAM, values)
