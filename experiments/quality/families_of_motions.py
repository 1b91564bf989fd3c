"""Forty textbook systems in four families, none of which is in `motions.py`: with sums that are conserved, chaotic ones
read at coarse steps, with fractions, and with a fast and a slow part.

The other initial value of the first family leaves the planes of the first one. Nothing was developed on these systems.
"""

from __future__ import annotations

from quality.motions import Motion, motion

CONSERVED = [
    motion("monomers and dimers", "m' = 0.8*d - 1.4*m**2; d' = 0.7*m**2 - 0.4*d", (3.0, 0.2), (0.6, 1.9), 4),
    motion(
        "ligand and receptor",
        "r' = 0.6*c - 1.3*r*l; l' = 0.6*c - 1.3*r*l; c' = 1.3*r*l - 0.6*c",
        (1.0, 1.7, 0.1),
        (0.4, 0.9, 1.3),
        4,
    ),
    motion(
        "infection whose immunity wanes",
        "s' = 0.12*r - 0.7*s*i; i' = 0.7*s*i - 0.3*i; r' = 0.3*i - 0.12*r",
        (1.9, 0.1, 0.0),
        (0.8, 0.3, 0.2),
        30,
    ),
    motion(
        "tracer in blood, muscle and bone",
        "b' = 0.5*m + 0.15*o - 1.2*b; m' = 0.9*b - 0.5*m; o' = 0.3*b - 0.15*o",
        (2.0, 0.3, 0.1),
        (0.1, 0.2, 3.0),
        12,
    ),
    motion(
        "chains of monomers",
        "m' = -1.2*m**2 - 0.9*m*d; d' = 0.6*m**2 - 0.9*m*d; k' = 0.9*m*d",
        (2.0, 0.1, 0.0),
        (0.7, 1.1, 0.5),
        5,
    ),
    motion(
        "ring of isomers",
        "a' = 0.35*c - 0.9*a; b' = 0.9*a - 0.6*b; c' = 0.6*b - 0.35*c",
        (2.5, 0.1, 0.3),
        (0.2, 0.4, 1.1),
        10,
    ),
    motion("reversible autocatalysis", "a' = 0.3*b**2 - 1.1*a*b; b' = 1.1*a*b - 0.3*b**2", (2.0, 0.05), (0.3, 1.4), 6),
    motion(
        "nutrient, algae and grazers",
        "n' = 0.2*p + 0.3*z - 0.8*n*p; p' = 0.8*n*p - 0.2*p - 0.7*p*z; z' = 0.7*p*z - 0.3*z",
        (1.6, 0.3, 0.2),
        (0.5, 1.2, 0.6),
        20,
    ),
    motion(
        "exchange of partners",
        "a' = 0.4*c*d - 1.5*a*b; b' = 0.4*c*d - 1.5*a*b; c' = 1.5*a*b - 0.4*c*d; d' = 1.5*a*b - 0.4*c*d",
        (1.4, 0.9, 0.1, 0.3),
        (0.3, 0.6, 1.2, 0.8),
        4,
    ),
    motion(
        "enzyme and inhibitor",
        "e' = 1.6*c + 0.3*d - 2*e*s - 1.1*e*i; s' = 0.4*c - 2*e*s; c' = 2*e*s - 1.6*c; i' = 0.3*d - 1.1*e*i; "
        "d' = 1.1*e*i - 0.3*d",
        (1.0, 2.5, 0.0, 0.6, 0.0),
        (0.5, 1.2, 0.3, 1.0, 0.1),
        6,
    ),
]

CHAOTIC = [
    motion(
        "oscillator of Nose and Hoover",
        "x' = y; y' = y*z - x; z' = 1 - y**2",
        (0.0, 5.0, 0.0),
        (0.5, -4.0, 0.6),
        10,
        compared=40,
    ),
    motion(
        "double convection of Rucklidge",
        "x' = 6.7*y - 2*x - y*z; y' = x; z' = y**2 - z",
        (1.2, 0.8, 4.5),
        (-2.0, 1.5, 6.0),
        15,
        compared=25,
    ),
    motion(
        "attractor of Halvorsen",
        "x' = -1.4*x - 4*y - 4*z - y**2; y' = -1.4*y - 4*z - 4*x - z**2; z' = -1.4*z - 4*x - 4*y - x**2",
        (-5.0, 0.5, 1.0),
        (-2.0, -4.0, 1.5),
        6,
        compared=7,
    ),
    motion(
        "attractor of Burke and Shaw",
        "x' = -10*x - 10*y; y' = -y - 10*x*z; z' = 4.272 + 10*x*y",
        (0.6, -0.4, 0.9),
        (-1.0, 0.5, 0.2),
        5,
        compared=7,
    ),
    motion(
        "dynamo of Rikitake",
        "x' = z*y - x; y' = x*(z - 3) - y; z' = 1 - x*y",
        (1.5, 0.6, 4.0),
        (-1.0, -1.2, 3.0),
        15,
        compared=34,
    ),
    motion(
        "interest, demand and prices",
        "x' = z + (y - 0.9)*x; y' = 1 - 0.2*y - x**2; z' = -x - 1.2*z",
        (1.0, 3.0, 1.0),
        (-0.8, 2.0, 0.3),
        25,
        compared=60,
    ),
    motion(
        "general circulation of Lorenz",
        "x' = 2 - y**2 - z**2 - 0.25*x; y' = x*y - 4*x*z - y + 1; z' = 4*x*y + x*z - z",
        (1.2, 0.6, -0.9),
        (0.5, -1.0, 1.1),
        10,
        compared=26,
    ),
    motion(
        "hyperchaos of Jia",
        "x' = 10*(y - x) + w; y' = x*(28 - z) - y; z' = x*y - 8/3*z; w' = 1.3*w - x*z",
        (0.5, -3.0, 18.0, -20.0),
        (4.0, 6.0, 25.0, 15.0),
        8,
        compared=16,
    ),
    motion(
        "waves of Lorenz and Stenflo",
        "x' = y - x + 1.5*w; y' = x*(26 - z) - y; z' = x*y - 0.7*z; w' = -x - w",
        (1.5, 4.0, 20.0, -1.0),
        (-3.0, -2.0, 25.0, 2.0),
        10,
        compared=25,
    ),
    motion(
        "five places on a circle of latitude",
        "a' = (b - d)*e - a + 8; b' = (c - e)*a - b + 8; c' = (d - a)*b - c + 8; d' = (e - b)*c - d + 8; "
        "e' = (a - c)*d - e + 8",
        (3.0, 1.0, -2.0, 5.0, 4.0),
        (6.0, 2.0, 1.0, -1.0, 3.0),
        5,
        compared=11,
    ),
]
"""Compared over about five Lyapunov times (40 in place of 250 for the first one), longer than the readings last."""

FRACTIONS = [
    motion("fed enzyme", "s' = 0.5 - 1.7*s/(0.8 + s)", (5.0,), (0.05,), 8),
    motion(
        "bacteria poisoned by their food",
        "s' = 0.3*(6 - s) - 1.4*s*b/(0.5 + s + s**2/3); b' = 1.4*s*b/(0.5 + s + s**2/3) - 0.3*b",
        (3.0, 0.4),
        (1.0, 3.0),
        20,
    ),
    motion(
        "hunters that hinder each other",
        "x' = 1.1*x*(1 - x/8) - 1.5*x*y/(1 + 0.5*x + 0.3*y); y' = 0.9*x*y/(1 + 0.5*x + 0.3*y) - 0.6*y",
        (5.0, 0.6),
        (1.0, 2.5),
        25,
    ),
    motion(
        "hunters as many as their prey feed",
        "x' = x*(1 - x/7) - 0.9*x*y/(0.8 + x); y' = 0.4*y*(1 - y/(0.7*x))",
        (5.0, 0.8),
        (1.5, 2.5),
        30,
    ),
    motion("spots of Gierer and Meinhardt", "a' = 0.1 + a**2/h - 0.9*a; h' = a**2 - 1.1*h", (0.6, 1.4), (2.0, 0.8), 15),
    motion(
        "bacteria in a flask",
        "s' = -0.9*s*b/(0.4 + s); b' = 0.5*s*b/(0.4 + s) - 0.06*b",
        (4.0, 0.2),
        (1.5, 1.0),
        20,
    ),
    motion(
        "alcohol in blood and tissue",
        "c' = 0.2*p - 0.3*c - 1.2*c/(0.7 + c); p' = 0.3*c - 0.2*p",
        (4.0, 0.1),
        (1.0, 3.0),
        12,
    ),
    motion("switch of Goldbeter and Koshland", "p' = 0.7*(1 - p)/(1.3 - p) - 0.5*p/(0.2 + p)", (0.02,), (0.99,), 8),
    motion(
        "two species on one food",
        "s' = 0.5*(6 - s) - 1.2*s*x/(0.7 + s) - 0.9*s*y/(0.3 + s); x' = 1.2*s*x/(0.7 + s) - 0.5*x; "
        "y' = 0.9*s*y/(0.3 + s) - 0.5*y",
        (5.0, 0.3, 0.5),
        (1.0, 2.0, 0.4),
        15,
    ),
    motion("gene that represses itself", "m' = 2/(1 + p**4) - 0.6*m; p' = 0.9*m - 0.4*p", (0.1, 0.2), (2.0, 1.5), 20),
]

SCALES = [
    motion("enzyme and its complex", "s' = (s + 0.5)*c - s; c' = (s - (s + 1)*c)/0.08", (1.5, 0.0), (0.4, 0.9), 5),
    motion("two plates in contact", "x' = -18*(x - y); y' = 0.4*x - 0.9*y", (3.0, 0.5), (0.2, 2.0), 5),
    motion("quick prey, slow hunters", "x' = 6*x*(1 - x/3 - y); y' = 0.3*x*y - 0.25*y", (1.0, 0.4), (2.5, 1.0), 25),
    motion("string of Rayleigh", "x' = v; v' = 5*(v - v**3/3) - x", (0.5, 0.3), (-2.0, -1.0), 20),
    motion("pendulum in honey", "a' = w; w' = -9*w - 8*sin(a)", (2.6, 0.0), (-1.0, 4.0), 6),
    motion(
        "delayed neutrons",
        "n' = 0.5*c - 7*n - 0.6*n*h; c' = 7*n - 0.5*c; h' = n - 0.3*h",
        (1.0, 3.0, 0.1),
        (0.2, 8.0, 0.8),
        8,
    ),
    motion(
        "slow curve of Davis and Skodje", "y' = -y; z' = (9*y + 10*y**2)/(1 + y)**2 - 10*z", (3.0, 0.1), (1.2, 1.5), 5
    ),
    motion("quick messenger, slow protein", "m' = 10/(1 + p**2) - 8*m; p' = 1.3*m - 0.5*p", (0.1, 0.0), (1.5, 2.0), 8),
    motion("enzyme that dies", "s' = -6*e*s/(1 + s); e' = -0.3*e", (4.0, 1.0), (1.5, 0.5), 4),
    motion("fan on a motor", "i' = 20*(1.5 - i - 0.4*w); w' = 0.8*i - 0.1*w**2", (0.1, 0.2), (2.0, 3.0), 6),
]

FAMILIES: dict[str, list[Motion]] = {
    "conserved": CONSERVED,
    "chaotic": CHAOTIC,
    "fractions": FRACTIONS,
    "scales": SCALES,
}
