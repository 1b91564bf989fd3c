"""Systems of differential equations from textbooks, with two initial values each; SciPy makes their trajectories."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp

Array = np.ndarray


@dataclass(frozen=True)
class Motion:
    """A system.

    Parameters
    ----------
    name : str
    equations : str
        A line a state, ``x' = ...``, in Python with NumPy's functions; `t` is the time.
    starts : two tuples of float
        The initial value to learn from, and the other one.
    end : float
        Last time.
    compared : float
        Time until which motions from the other value are compared; 0 for `end`.
    """

    name: str
    equations: str
    starts: tuple[tuple[float, ...], tuple[float, ...]]
    end: float
    compared: float = 0.0

    @cached_property
    def rates_by_state(self) -> dict[str, str]:
        """The text of each state's rate."""
        pairs = (line.split("' = ") for line in self.equations.strip().splitlines())
        return {state.strip(): rate.strip() for state, rate in pairs}

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return tuple(self.rates_by_state)

    @property
    def autonomous(self) -> bool:
        """Whether the time does not occur."""
        compiled = compile("\n".join(self.rates_by_state.values()), self.name, "exec")
        return "t" not in compiled.co_names

    @property
    def untouched(self) -> bool:
        """Whether a hash of the name puts the system among those that nothing was developed on."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2 == 0

    @cached_property
    def rates(self) -> Callable[[float, Array], list[float]]:
        """The right-hand side as SciPy takes it."""
        names = ["sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "abs", "arctan"]
        known = {name: getattr(np, name) for name in names}
        source = f"lambda t, {', '.join(self.states)}: [{', '.join(self.rates_by_state.values())}]"
        function = eval(source, known)
        return lambda t, states: function(t, *states)

    def trajectory(self, start: tuple[float, ...], times: Array) -> Array:
        """States at some times, from those at the time 0, shape (n_times, n_states)."""
        found = solve_ivp(self.rates, (0, times[-1]), start, "LSODA", times, rtol=1e-10, atol=1e-12)
        if not found.success or found.y.shape[1] != len(times):
            raise ArithmeticError(f"{self.name}: {found.message}")
        return found.y.T


def motion(
    name: str, equations: str, first: tuple[float, ...], other: tuple[float, ...], end: float, compared: float = 0.0
) -> Motion:
    """A system whose equations are on one line."""
    return Motion(name, equations.replace("; ", "\n"), (first, other), end, compared)


MOTIONS = [
    # One state.
    motion("charging capacitor", "v' = (5 - v)/1.7", (0.3,), (9.0,), 8),
    motion("capacitor on alternating voltage", "v' = (cos(2*t) - v)/0.8", (0.0,), (2.0,), 8),
    motion("logistic growth", "n' = 0.79*n*(1 - n/74.3)", (7.3,), (21.0,), 10),
    motion("growth of Gompertz", "n' = 0.45*n*log(60/n)", (2.0,), (90.0,), 10),
    motion("growth with an effect of Allee", "n' = 0.6*n*(n/8 - 1)*(1 - n/30)", (9.5,), (40.0,), 10),
    motion("budworms eaten by birds", "n' = 0.78*n*(1 - n/81) - 9*n**2/(21.2**2 + n**2)", (2.8,), (70.0,), 20),
    motion("fishing quota", "n' = 0.9*n*(1 - n/40) - 4", (8.0,), (55.0,), 10),
    motion("cooling of Newton", "c' = -0.17*(c - 21)", (88.0,), (4.0,), 20),
    motion("emptying tank", "h' = -0.35*sqrt(h)", (2.5,), (4.0,), 6),
    motion("skydiver", "v' = 9.81 - 0.0021175*v**2", (0.5,), (90.0,), 20),
    motion("radiating body", "k' = 0.4 - 0.3*k**4", (2.0,), (0.3,), 6),
    motion("enzyme of Michaelis and Menten", "s' = -1.4*s/(0.6 + s)", (5.0,), (2.0,), 6),
    motion("autocatalysis of second order", "c' = 2.3*c**2*(1 - c)", (0.15,), (0.4,), 8),
    motion("overdamped bead on a hoop", "p' = sin(p)*(1.9*cos(p) - 1)", (0.1,), (2.4,), 12),
    motion("gene that activates itself", "g' = 0.1 - 0.4*g + g**2/(0.64 + g**2)", (0.05,), (4.0,), 15),
    motion("animal that grows by its surface", "w' = 2*w**(2/3) - 0.7*w", (0.4,), (40.0,), 15),
    motion("capital of Solow", "k' = 0.35*sqrt(k) - 0.12*k", (0.7,), (20.0,), 40),
    motion("infection without immunity", "i' = 0.9*i*(1 - i) - 0.3*i", (0.02,), (0.95,), 20),
    motion("neuron with an exponential", "v' = 0.3*exp(v) - v - 0.5", (1.1,), (-3.0,), 6),
    motion("phase that locks", "p' = 1.2 - 0.9*sin(p)", (0.4,), (2.5,), 12),
    motion("motion of a snow plough", "s' = 2.1/(1 + 0.4*s)", (0.2,), (3.0,), 10),
    motion("a dimer that falls apart", "c' = 0.5 - 1.3*c - 0.7*c**2", (3.0,), (0.02,), 5),
    # Two states.
    motion("spring", "x' = v; v' = -2.1*x", (0.4, -0.03), (0.0, 2.0), 10),
    motion("damped spring", "x' = v; v' = -4.5*x - 0.43*v", (0.12, 0.043), (1.0, -0.3), 10),
    motion("pendulum", "a' = w; w' = -0.9*sin(a)", (-1.9, 0.0), (0.8, 1.2), 10),
    motion("damped pendulum", "a' = w; w' = -1.6*sin(a) - 0.25*w", (2.4, 0.2), (-1.0, 2.0), 12),
    motion("pendulum in the wind", "a' = w; w' = -sin(a) - 0.15*w*abs(w)", (2.0, 0.0), (-0.7, 1.5), 14),
    motion("spring of Duffing", "x' = v; v' = x - x**3 - 0.2*v", (0.3, 0.9), (-1.8, 0.0), 12),
    motion(
        "driven spring of Duffing",
        "x' = v; v' = -x - 0.3*x**3 - 0.2*v + 0.8*cos(1.3*t)",
        (0.5, 0.0),
        (-1.2, 1.0),
        15,
    ),
    motion("oscillator of van der Pol", "x' = y; y' = 0.9*(1 - x**2)*y - x", (2.2, 0.0), (0.1, 3.2), 14),
    motion("predator and prey", "x' = 1.8*x - 0.6*x*y; y' = 0.4*x*y - 1.1*y", (8.3, 3.4), (2.0, 1.0), 12),
    motion("competing species", "x' = x*(3 - x - 2*y); y' = y*(2 - x - y)", (5.0, 4.3), (0.3, 0.9), 8),
    motion(
        "predators that are sated",
        "x' = 1.2*x*(1 - x/6) - 2*x*y/(1.5 + x); y' = 1.6*x*y/(1.5 + x) - 0.8*y",
        (3.0, 0.7),
        (1.0, 2.0),
        20,
    ),
    motion(
        "mutualists",
        "x' = 0.8*x*(1 - x/(2 + 0.5*y)); y' = 0.6*y*(1 - y/(1 + 0.7*x))",
        (0.2, 0.4),
        (5.0, 0.1),
        14,
    ),
    motion("epidemic", "s' = -0.4*s*i; i' = 0.4*s*i - 0.314*i", (7.2, 0.98), (20.0, 0.1), 10),
    motion(
        "neuron of FitzHugh and Nagumo",
        "v' = v - v**3/3 - w + 0.5; w' = 0.08*(v + 0.7 - 0.8*w)",
        (-1.2, -0.4),
        (1.5, 1.2),
        60,
    ),
    motion("brusselator", "x' = 1 - 4*x + x**2*y; y' = 3*x - x**2*y", (0.7, -1.4), (2.1, 1.3), 12),
    motion("reaction of Schnakenberg", "x' = 0.2 - x + x**2*y; y' = 0.9 - x**2*y", (0.14, 0.6), (1.5, 0.3), 15),
    motion(
        "glycolysis of Selkov",
        "x' = -x + 0.08*y + x**2*y; y' = 0.6 - 0.08*y - x**2*y",
        (0.4, 0.31),
        (1.5, 1.7),
        20,
    ),
    motion(
        "chlorine dioxide and iodine",
        "x' = 8.9 - x - 4*x*y/(1 + x**2); y' = 1.4*x*(1 - y/(1 + x**2))",
        (0.2, 0.35),
        (3.0, 7.8),
        12,
    ),
    motion("genetic switch", "u' = 3/(1 + v**2) - u; v' = 2.6/(1 + u**2) - v", (0.3, 0.35), (2.4, 2.1), 10),
    motion(
        "excited and inhibited neurons",
        "e' = -e + 1/(1 + exp(-4*e + 5*i + 1)); i' = -i + 1/(1 + exp(2 - 6*e))",
        (0.9, 0.1),
        (0.2, 0.8),
        12,
    ),
    motion("glider", "v' = -sin(a) - 0.1*v**2; a' = v - cos(a)/v", (5.0, 0.7), (2.0, 0.1), 10),
    motion("bead on a turning hoop", "p' = w; w' = sin(p)*(1.6*cos(p) - 0.9) - 0.3*w", (2.1, 0.0), (-0.3, 1.4), 15),
    motion("laser", "n' = 1.9*g*n - 0.8*n; g' = 1.5 - g - g*n", (0.05, 1.2), (2.0, 0.2), 12),
    motion("cell cycle", "u' = 10*(v - u)*(0.02 + u**2) - u; v' = 0.25 - u", (0.2, 0.6), (0.8, 0.1), 16),
    motion(
        "chemostat",
        "s' = 0.4*(5 - s) - 1.1*s*b/(0.9 + s); b' = 1.1*s*b/(0.9 + s) - 0.4*b",
        (4.0, 0.2),
        (0.3, 3.5),
        15,
    ),
    motion("junction of Josephson", "p' = v; v' = 1.4 - sin(p) - 0.6*v", (0.1, 0.0), (2.0, 2.5), 15),
    motion(
        "tunnel diode",
        "v' = (j - v*(v - 1)*(v - 2.5))/0.7; j' = (1.5 - v - 0.6*j)/1.2",
        (0.2, 0.1),
        (2.3, 1.2),
        12,
    ),
    motion("lovers", "r' = 0.3*r - 1.2*j; j' = 0.9*r - 0.5*j", (1.0, 0.2), (-0.5, 1.5), 12),
    motion("motor", "i' = 6 - 2*i - 0.5*w; w' = 0.9*i - 0.2*w - 0.3", (0.1, 0.1), (5.0, 4.0), 10),
    motion("distance of a planet", "r' = v; v' = 1.1/r**3 - 1/r**2", (1.0, 0.3), (1.6, -0.1), 14),
    motion(
        "bomb of two gases",
        "c' = 1 - c - 0.3*c*exp(h/2); h' = 0.9*c*exp(h/2) - 0.7*h",
        (0.5, 0.2),
        (1.5, 1.0),
        10,
    ),
    motion(
        "plants and grazers",
        "p' = p*(1 - p) - 0.9*p**2*g/(0.1 + p**2); g' = 0.7*p**2*g/(0.1 + p**2) - 0.4*g",
        (0.6, 0.2),
        (0.2, 0.7),
        25,
    ),
    motion("rock that skids", "x' = v; v' = -1.3*x - 0.4*tanh(5*v)", (3.0, 0.0), (-1.5, 2.0), 10),
    # Three states.
    motion(
        "convection of Lorenz",
        "x' = 5.1*(y - x); y' = x*(12 - z) - y; z' = x*y - 1.67*z",
        (2.3, 8.1, 12.4),
        (10.0, 20.0, 30.0),
        8,
    ),
    motion(
        "chaos of Lorenz",
        "x' = 10*(y - x); y' = x*(28 - z) - y; z' = x*y - 8/3*z",
        (2.3, 8.1, 12.4),
        (-5.0, -8.0, 22.0),
        4,
    ),
    motion(
        "band of Rossler",
        "x' = -y - z; y' = x + 0.2*y; z' = 0.2 + z*(x - 5.7)",
        (2.3, 1.1, 0.8),
        (-0.1, 4.1, -2.1),
        12,
    ),
    motion(
        "epidemic with incubation",
        "s' = -0.9*s*i; e' = 0.9*s*i - 0.5*e; i' = 0.5*e - 0.25*i",
        (0.95, 0.04, 0.01),
        (0.6, 0.01, 0.2),
        30,
    ),
    motion("rigid body", "a' = 0.8*b*c; b' = -1.3*a*c; c' = 0.5*a*b", (1.0, 0.4, 0.9), (0.2, 1.1, -0.6), 14),
    motion(
        "circuit of Chua",
        "x' = 9*(y - x**3/16 + x/6); y' = x - y + z; z' = -14*y",
        (0.7, 0.1, 0.0),
        (-1.5, 0.3, 1.0),
        6,
    ),
    motion(
        "lattice of Thomas",
        "x' = sin(y) - 0.2*x; y' = sin(z) - 0.2*y; z' = sin(x) - 0.2*z",
        (1.1, 1.0, 0.2),
        (-0.5, 2.5, 1.5),
        20,
    ),
    motion(
        "bursting neuron",
        "x' = y - x**3 + 3*x**2 - z + 2.5; y' = 1 - 5*x**2 - y; z' = 0.02*(4*(x + 1.6) - z)",
        (-1.0, 0.0, 2.0),
        (0.5, -3.0, 1.0),
        20,
    ),
    motion(
        "food chain",
        "x' = x*(1 - x) - 2.5*x*y/(1 + 3*x); y' = 2.5*x*y/(1 + 3*x) - 0.4*y - 0.5*y*z/(1 + y); "
        "z' = 0.5*y*z/(1 + y) - 0.1*z",
        (0.7, 0.2, 0.6),
        (0.3, 0.5, 0.2),
        30,
    ),
    motion(
        "three genes in a ring",
        "a' = 4/(1 + c**3) - a; b' = 4/(1 + a**3) - b; c' = 4/(1 + b**3) - c",
        (0.2, 0.5, 1.6),
        (2.0, 0.1, 1.0),
        12,
    ),
    motion("five terms of Sprott", "x' = y*z; y' = x - y; z' = 1 - x*y", (0.5, 0.6, 0.2), (-0.3, 1.0, 1.5), 14),
    motion(
        "chain of reactions",
        "a' = -0.8*a; b' = 0.8*a - 0.5*b**2; c' = 0.5*b**2",
        (2.0, 0.1, 0.0),
        (0.5, 1.5, 0.4),
        8,
    ),
    motion(
        "oregonator, mild",
        "x' = (0.02*y - x*y + x*(1 - x))/0.2; y' = (-0.02*y - x*y + z)/0.4; z' = x - z",
        (0.3, 0.2, 0.1),
        (0.8, 0.05, 0.5),
        10,
    ),
    motion(
        "tank in a tank in a tank",
        "a' = 1 - 0.6*sqrt(a); b' = 0.6*sqrt(a) - 0.5*sqrt(b); c' = 0.5*sqrt(b) - 0.4*sqrt(c)",
        (0.3, 2.0, 4.0),
        (5.0, 0.5, 0.6),
        12,
    ),
    # Four states.
    motion(
        "planet",
        "x' = u; y' = v; u' = -x/(x**2 + y**2)**1.5; v' = -y/(x**2 + y**2)**1.5",
        (1.0, 0.0, 0.1, 1.1),
        (0.6, 0.8, -0.7, 0.9),
        10,
    ),
    motion(
        "star in a galaxy",
        "x' = u; y' = v; u' = -x - 2*x*y; v' = -y - x**2 + y**2",
        (0.1, 0.2, 0.3, 0.1),
        (-0.2, 0.1, 0.1, 0.35),
        16,
    ),
    motion(
        "two springs",
        "x' = u; y' = v; u' = -2*x + 0.9*y; v' = 0.9*x - 1.7*y - 0.1*v",
        (1.0, 0.0, 0.0, 0.5),
        (-0.4, 0.8, 0.6, 0.0),
        14,
    ),
    motion(
        "two pendulums on a spring",
        "a' = u; b' = v; u' = -sin(a) - 0.4*(a - b); v' = -sin(b) + 0.4*(a - b)",
        (1.5, 0.0, 0.0, 0.3),
        (-0.6, 1.2, 0.5, 0.0),
        14,
    ),
    motion(
        "pendulum on a rubber band",
        "r' = u; a' = w; u' = r*w**2 + cos(a) - 4*(r - 1); w' = (-sin(a) - 2*u*w)/r",
        (1.3, 0.8, 0.0, 0.0),
        (1.1, -0.4, 0.3, 0.9),
        10,
    ),
    motion(
        "epidemic with births",
        "s' = 0.1 - 0.1*s - 0.8*s*i; e' = 0.8*s*i - 0.6*e; i' = 0.55*e - 0.3*i; r' = 0.25*i - 0.1*r",
        (0.9, 0.05, 0.05, 0.0),
        (0.4, 0.02, 0.3, 0.2),
        30,
    ),
    motion(
        "two eyes that compete",
        "x' = -x + 1/(1 + exp(4*y + a - 2)); y' = -y + 1/(1 + exp(4*x + b - 2)); a' = 0.3*(x - a); b' = 0.3*(y - b)",
        (0.3, 0.6, 0.1, 0.2),
        (0.9, 0.1, 0.5, 0.4),
        20,
    ),
    motion(
        "thrown ball",
        "x' = u; y' = v; u' = -0.08*u*sqrt(u**2 + v**2); v' = -9.81 - 0.08*v*sqrt(u**2 + v**2)",
        (0.0, 1.0, 12.0, 15.0),
        (2.0, 3.0, 6.0, 20.0),
        3,
    ),
    motion(
        "binding of an enzyme",
        "e' = 1.2*c - 2*e*s; s' = 0.5*c - 2*e*s; c' = 2*e*s - 1.2*c; p' = 0.7*c",
        (1.0, 2.0, 0.0, 0.1),
        (0.5, 4.0, 0.3, 0.0),
        8,
    ),
]
"""All systems; constants are of this file."""
