"""Systems as Julia programs that integrate with OrdinaryDiffEq."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shine.formats.write.language import Form, calls, identifiers
from shine.formats.write.printer import Phrase
from shine.formats.write.python import NUMPY, POWER, SIGN, Expression, digits, identifier
from shine.formats.write.systems.system import System, filled

_PROGRAM = """\
#=
@EQUATIONS@

Written by Shine. Roots and logarithms of negative numbers are errors in Julia, not NaN.
=#
@USING@@RUNS@# @WHAT@; `controls` is a function of the time that returns a tuple.
function @NAME@!(rates_, states_, controls_, t_)
@UNPACKED@@RATES@    return nothing
end

@SIMULATE@"""

_INTEGRATE = """\
# The solution from the states at the first of increasing times, saved at all of them.
function simulate(start, times@RUN@; controls = t -> ())
    problem = ODEProblem(@NAME@!, float.(start), (float(first(times)), float(last(times))), @INPUTS@)
    return solve(problem, AutoTsit5(Rosenbrock23()); saveat = times, reltol = 1e-9, abstol = 1e-12)
end
"""

_ITERATE = """\
# States at the steps 0 to `steps`, a vector each; `controls` is a function of the step that returns a tuple.
function simulate(start, steps@RUN@; controls = t -> ())
    inputs = @INPUTS@
    found = [float.(start)]
    for step in 0:(steps - 1)
        push!(found, similar(found[1]))
        @NAME@!(found[end], found[end - 1], inputs, step)
    end
    return found
end
"""

_FUNCTIONS = """abs sqrt exp log floor ceil sign sin cos tan asin acos atan sinh cosh tanh log1p expm1 log2 log10 cbrt
mod min max"""

_WORDS = f"""abstract baremodule begin break catch const continue do else elseif end export false finally for function
global if import in isa let local macro module mutable primitive quote return struct true try type using var where
while {_FUNCTIONS} fld ifelse NaN Inf pi float first last simulate rates_ states_ controls_ t_ runs_"""


_JULIA = replace(
    NUMPY,
    name="a Julia program",
    forms={
        **NUMPY.forms,
        **calls(_FUNCTIONS, floordiv="fld"),
        "pow": Form("{0}^{1}", POWER, (POWER + 1, SIGN + 1)),
        "where": Form("ifelse({0}, {1}, {2})", conditions=(0,)),
    },
    conditions={**NUMPY.conditions, "logical_not": Form("!({0})", conditions=(0,))},
    zero=None,
    as_number=Form("float({0})", conditions=(0,)),
    number=partial(digits, nan="NaN", infinity="Inf"),
)


class _Julia(Expression):
    """Julia expressions: those of NumPy with other functions and signs."""

    def pow(self, base: Phrase, exponent: Phrase) -> Phrase:
        """``a^b``."""
        return self.formed("pow", base, exponent)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        """A call of `ifelse`."""
        return self.formed("where", condition, yes, no)


def _text(name: str) -> str:
    """A text of Julia."""
    escaped = name.replace("\\", r"\\").replace('"', r"\"").replace("$", r"\$")
    return f'"{escaped}"'


def julia_program(system: System, name: str = "f") -> str:
    """Julia source with the right-hand side, in place as OrdinaryDiffEq takes it, and a function that integrates it.

    Raises
    ------
    ValueError
        If the name is not an identifier.
    ExportError
        If a formula calls a function without a definition, or its text would be too long.
    """
    if not name.isidentifier() or name in _WORDS.split():
        raise ValueError(f"{name!r} is not a name for a Julia function")
    names = identifiers(identifier, system.parameters, {*_WORDS.split(), name})
    states = [names[state] for state in system.states]
    unpacked = [f"{', '.join(states)}, = states_", f"{names[system.time]} = t_"]
    if system.controls:
        unpacked.append(f"{', '.join(names[control] for control in system.controls)}, = controls_(t_)")
    runs = f"const runs_ = [{', '.join(map(_text, system.runs))}]  # the number of one, from 0, is the last control\n\n"
    rates = [
        f"rates_[{place}] = {_Julia(_JULIA).text(tree, names)}" for place, tree in enumerate(system.trees, start=1)
    ]
    return filled(
        _PROGRAM,
        {
            "EQUATIONS": system.text.replace("=#", "= #"),
            "UNPACKED": "".join(f"    {line}\n" for line in unpacked),
            "RATES": "".join(f"    {rate}\n" for rate in rates),
            "RUNS": runs * bool(system.runs),
            "SIMULATE": _ITERATE if system.is_map else _INTEGRATE,
            "RUN": ", run" * bool(system.runs),
            "INPUTS": "t -> (controls(t)..., findfirst(==(run), runs_) - 1)" if system.runs else "controls",
            "USING": "" if system.is_map else "using OrdinaryDiffEq\n\n",
            "WHAT": "States a step later" if system.is_map else "Rates of the states at one time",
            "NAME": name,
        },
    )
