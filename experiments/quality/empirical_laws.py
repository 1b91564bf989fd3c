"""Empirical laws, each measured as in the days when it was found: few rows, plain instruments, units of its field.

The numbers are those of textbooks, rounded: apparatus, substances and ranges are typical, not copied from a table of
readings. In the text of a law, numbers with a point and all exponents of `**` are constants of nature or of the
apparatus, which a measurement determines; whole numbers such as the 1 of `1 - exp(-2.0*time)` belong to the form (see
`quality.families`).
"""

from __future__ import annotations

from quality.measurements import (
    COUNTS,
    Law,
    absolute,
    anywhere,
    decades,
    even,
    given,
    law,
    of,
    relative,
    spaced,
)

MECHANICS = (
    law("mechanics-Hooke", "0.412*load", rows=9, noise=absolute(0.05), load=even(2, 18)),
    law("mechanics-pendulum", "2.006*length**0.5", rows=12, noise=relative(0.01), length=even(0.15, 1.8)),
    law("mechanics-Torricelli", "4.43*height**0.5", rows=10, noise=relative(0.03), height=even(0.05, 1.5)),
    law(
        "mechanics-projectile",
        "1.2 + 0.781*x - 0.0362*x**2",
        rows=16, noise=absolute(0.03), x=even(0, 22),
    ),
    law("mechanics-range", "speed**2*sin(2*angle)/9.81", rows=24, noise=relative(0.03),
        speed=of(8, 12, 16, 20), angle=anywhere(0.17, 1.4)),
    law("mechanics-drag", "0.28*speed**2", rows=11, noise=relative(0.05), speed=even(4, 34)),
    law("mechanics-terminal-velocity", "4.9*(1 - exp(-2.0*time))", rows=15, noise=absolute(0.06), time=even(0.1, 2.5)),
    law("mechanics-Stokes", "2180.0*(rho - 998.0)*radius**2", rows=14, noise=relative(0.05),
        rho=of(2500, 4000, 7800), radius=spaced(2e-4, 2e-3)),
    law("mechanics-Kepler", "365.25*a**1.5", rows=6, noise=relative(0.003),
        a=given(0.387, 0.723, 1.0, 1.524, 5.203, 9.54)),
    law("mechanics-catenary", "0.9*(exp(x/1.8) + exp(-x/1.8))", rows=15, noise=absolute(0.01), x=even(-2.4, 2.4)),
    law("mechanics-damped-oscillation", "7.5*exp(-0.21*t)*cos(3.3*t)", rows=40, noise=absolute(0.15), t=even(0, 9)),
)  # fmt: skip

FLUIDS_AND_HEAT = (
    law("heat-Boyle", "1402/V", rows=25, noise=relative(0.01), V=even(12, 48)),
    law("heat-ideal-gas", "8.314*n*T/V", rows=30, noise=relative(0.02),
        n=of(0.5, 1, 1.5), T=anywhere(270, 420), V=anywhere(5, 40)),
    law("heat-van-der-Waals", "83.14*T/(V - 42.7) - 3.64e6/V**2", rows=40, noise=relative(0.005),
        T=of(290, 310, 330, 350), V=anywhere(70, 400)),
    law("heat-Newton-cooling", "21.5 + 63.0*exp(-0.034*minutes)", rows=20, noise=absolute(0.4), minutes=even(0, 76)),
    law("heat-Stefan-Boltzmann", "4.1e-12*(T**4 - 7.4e9)", rows=12, noise=relative(0.02), T=even(400, 1500)),
    law("heat-Stefan-Dulong", "5.6e-8*T**4", rows=7, noise=relative(0.04),
        T=given(373, 473, 600, 800, 1000, 1250, 1500)),
    law("heat-Wien", "2.898e-3/T", rows=10, noise=relative(0.02), T=even(800, 1700)),
    law("heat-Planck-isochromat", "2.1e6/(exp(22150.0/T) - 1)", rows=14, noise=relative(0.03), T=even(1000, 3200)),
    law("heat-Debye", "1.94e-3*T**3", rows=12, noise=relative(0.04), T=even(2, 18)),
    law("heat-Poiseuille", "390*dp*r**4/length", rows=24, noise=relative(0.04),
        dp=anywhere(50, 800), r=of(0.25, 0.4, 0.55, 0.7), length=of(20, 40, 80)),
    law("heat-Darcy", "0.00034*area*head/length", rows=20, noise=relative(0.06),
        area=of(0.05, 0.1), head=anywhere(1, 15), length=of(0.6, 1.1, 1.7)),
    law("heat-Manning", "43.0*R**0.6667*slope**0.5", rows=30, noise=relative(0.06),
        R=anywhere(0.2, 3), slope=decades(2e-4, 2e-2)),
)  # fmt: skip

ELECTRICITY = (
    law("electricity-Ohm", "V/R", rows=12, noise=relative(0.02), V=anywhere(1.5, 12), R=of(10, 22, 47, 100)),
    law("electricity-Coulomb", "8.99e9*q1*q2/r**2", rows=20, noise=relative(0.06),
        q1=anywhere(1e-8, 9e-8), q2=anywhere(1e-8, 9e-8), r=anywhere(0.03, 0.2)),
    law("electricity-RC-charging", "9.0*(1 - exp(-t/0.47))", rows=20, noise=absolute(0.08), t=even(0.05, 2.2)),
    law("electricity-diode", "2.6e-9*(exp(V/0.0483) - 1)", rows=18, noise=relative(0.04), V=even(0.2, 0.72)),
    law("electricity-thermistor", "10.0*exp(3450.0*(1/T - 1/298.15))", rows=15, noise=relative(0.02), T=even(273, 363)),
    law("electricity-resonance", "12.0/(1600.0 + (0.025*w - 1/(w*4e-6))**2)**0.5", rows=30, noise=relative(0.03),
        w=even(1500, 5500)),
    law("electricity-parallel", "R1*R2/(R1 + R2)", rows=20, noise=relative(0.01),
        R1=decades(10, 1000), R2=decades(10, 1000)),
    law("electricity-Paschen", "365.0*pd/(log(15.0*pd) - 1.18)", rows=25, noise=relative(0.03), pd=spaced(0.5, 60)),
    law("electricity-Richardson", "6.0e5*T**2*exp(-52000.0/T)", rows=12, noise=relative(0.06), T=even(1900, 2600)),
    law("electricity-Curie-Weiss", "1.52/(T - 118.0)", rows=16, noise=relative(0.03), T=even(150, 420)),
)  # fmt: skip

LIGHT_AND_ATOMS = (
    law("optics-Snell", "sin_i/1.333", rows=9, noise=absolute(0.004), sin_i=even(0.15, 0.98)),
    law("optics-Malus", "82.0*cos(0.0174533*degrees)**2", rows=19, noise=absolute(1.2), degrees=even(0, 180)),
    law("optics-lens", "1/(1/150.0 - 1/g)", rows=14, noise=relative(0.01), g=even(180, 900)),
    law("optics-Cauchy", "1.5046 + 4200.0/wavelength**2", rows=8, noise=absolute(2e-4),
        wavelength=given(404.7, 435.8, 486.1, 546.1, 587.6, 632.8, 656.3, 706.5)),
    law("optics-Beer-Lambert", "1850.0*exp(-0.62*depth)", rows=12, noise=relative(0.03), depth=even(0, 5.5)),
    law("optics-Bragg", "2*0.282*sin(theta)", rows=12, noise=relative(0.01), theta=anywhere(0.1, 0.9)),
    law("optics-Doppler", "149600.0/(340.0 - v)", rows=12, noise=absolute(0.8), v=even(-30, 30)),
    law("atoms-Rydberg", "1.0968e7*(1/n1**2 - 1/n2**2)", rows=14, noise=relative(5e-4),
        n1=given(1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4), n2=given(2, 3, 4, 5, 3, 4, 5, 6, 7, 4, 5, 6, 5, 6)),
    law("atoms-Balmer", "364.5*n**2/(n**2 - 4.0)", rows=6, noise=relative(1e-4), n=given(3, 4, 5, 6, 7, 8)),
    law("atoms-Moseley", "2.47e15*(Z - 1.0)**2", rows=11, noise=relative(0.004),
        Z=given(20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 40)),
    law("atoms-decay", "3400*exp(-0.0121*t)", rows=20, noise=COUNTS, t=even(0, 240)),
    law("atoms-photoelectric", "4.14*f - 2.28", rows=8, noise=absolute(0.03), f=even(0.58, 1.15)),
    law("atoms-Rutherford", "31/sin(0.5*angle)**4", rows=13, noise=COUNTS, angle=even(0.26, 2.6)),
)  # fmt: skip

CHEMISTRY = (
    law("chemistry-Arrhenius", "8.0e10*exp(-10600.0/T)", rows=9, noise=relative(0.05), T=even(283, 353)),
    law("chemistry-Michaelis-Menten", "0.142*S/(1.9 + S)", rows=12, noise=relative(0.05), S=spaced(0.2, 25)),
    law("chemistry-competitive-inhibition", "96.0*S/(S + 2.4 + 3.0*I)", rows=36, noise=relative(0.05),
        S=decades(0.3, 30), I=of(0, 0.5, 1, 2)),
    law("chemistry-Freundlich", "3.4*c**0.42", rows=10, noise=relative(0.06), c=spaced(0.02, 12)),
    law("chemistry-Langmuir", "40.1*p/(1 + 0.34*p)", rows=14, noise=relative(0.03), p=even(0.3, 24)),
    law("chemistry-BET", "208.8*x/((1 - x)*(1 + 71.0*x))", rows=20, noise=relative(0.01), x=even(0.03, 0.45)),
    law("chemistry-Nernst", "0.771 + 8.617e-5*T*log(ratio)", rows=24, noise=absolute(0.002),
        T=of(283, 298, 313, 333), ratio=decades(0.01, 100)),
    law("chemistry-Antoine", "exp(18.30 - 3816.0/(T - 46.1))", rows=18, noise=relative(0.01), T=even(290, 373)),
    law("chemistry-Henry", "0.034*p", rows=8, noise=relative(0.04), p=even(0.5, 6)),
    law("chemistry-Raoult", "x*12.7 + (1 - x)*3.8", rows=11, noise=absolute(0.12), x=even(0, 1)),
    law("chemistry-van-t-Hoff", "8.314*c*T", rows=15, noise=relative(0.03),
        c=anywhere(10, 300), T=of(280, 288, 296, 309)),
    law("chemistry-second-order", "1/(20.0 + 0.11*t)", rows=14, noise=relative(0.02), t=even(0, 900)),
    law("chemistry-Ostwald", "0.00424*c**-0.5", rows=10, noise=relative(0.05), c=spaced(0.005, 1)),
    law("chemistry-Fick", "0.0021*area*difference/thickness", rows=24, noise=relative(0.06),
        area=of(2, 4, 8), difference=anywhere(0.05, 1), thickness=anywhere(0.2, 2)),
    law("chemistry-Debye-Hueckel", "-0.509*z**2*I**0.5", rows=16, noise=absolute(0.006),
        z=of(1, 2, 3), I=decades(5e-4, 0.02)),
)  # fmt: skip

LIFE = (
    law("life-Kleiber", "70*mass**0.75", rows=13, noise=relative(0.12), mass=spaced(0.02, 3700)),
    law("life-species-area", "28*area**0.26", rows=16, noise=relative(0.15), area=decades(0.5, 1e5)),
    law("life-logistic-growth", "665.0/(1 + exp(4.16 - 0.531*t))", rows=19, noise=absolute(9), t=even(0, 18)),
    law("life-Gompertz", "exp(-9.9 + 0.0855*age)", rows=14, noise=relative(0.06), age=even(30, 95)),
    law("life-Hill", "100.0/(1 + (26.0/p)**2.7)", rows=20, noise=absolute(1.5), p=even(4, 110)),
    law("life-allometry", "0.062*length**2.93", rows=25, noise=relative(0.1), length=anywhere(8, 45)),
    law("life-Taylor", "1.6*mean**1.55", rows=20, noise=relative(0.2), mean=decades(0.5, 500)),
    law("life-Weber-Fechner", "1.8 + 2.4*log(I)", rows=12, noise=absolute(0.25), I=spaced(1, 1000)),
    law("life-Stevens", "4.1*I**0.33", rows=10, noise=relative(0.1), I=spaced(1, 1e4)),
    law("life-Holling", "1.4*N/(1 + 0.084*N)", rows=14, noise=relative(0.08), N=spaced(2, 150)),
)  # fmt: skip

EARTH_SKY_AND_PEOPLE = (
    law("sky-Hubble", "68.0*d", rows=24, noise=absolute(90), d=anywhere(0.5, 25)),
    law("sky-Tully-Fisher", "0.0042*v**3.9", rows=30, noise=relative(0.18), v=decades(60, 330)),
    law("sky-Leavitt", "17.6 - 1.22*log(P)", rows=25, noise=absolute(0.15), P=decades(1.5, 100)),
    law("sky-Titius-Bode", "0.4 + 0.15*exp(0.693*k)", rows=7, noise=relative(0.02), k=even(1, 7)),
    law("earth-Gutenberg-Richter", "exp(17.1 - 2.3*M)", rows=12, noise=COUNTS, M=even(4, 6.6)),
    law("earth-Omori", "240.0/(t + 0.6)**1.1", rows=30, noise=COUNTS, t=even(1, 30)),
    law("earth-barometer", "1013.0*exp(-h/7990.0)", rows=14, noise=absolute(3), h=even(0, 4800)),
    law("earth-Arps", "880.0*(1 + 0.088*t)**-1.25", rows=36, noise=relative(0.04), t=even(0, 35)),
    law("earth-tide", "2.1 + 1.35*sin(0.5059*t + 0.8)", rows=50, noise=absolute(0.08), t=even(0, 49)),
    law("matter-Hall-Petch", "72.0 + 19.5*d**-0.5", rows=12, noise=relative(0.03), d=spaced(0.004, 0.3)),
    law("matter-Norton", "3.2e4*s**4.6*exp(-34000.0/T)", rows=30, noise=relative(0.1),
        s=decades(40, 160), T=of(800, 850, 900)),
    law("people-Zipf", "12100/rank", rows=40, noise=COUNTS, rank=even(1, 40)),
    law("people-gravity-of-trade", "0.37*g1**0.9*g2**0.8/distance**1.1", rows=60, noise=relative(0.2),
        g1=decades(10, 4000), g2=decades(10, 4000), distance=decades(300, 12000)),
    law("people-Cobb-Douglas", "1.01*L**0.75*K**0.25", rows=24, noise=relative(0.02),
        L=anywhere(100, 190), K=anywhere(100, 430)),
)  # fmt: skip

LAWS: tuple[Law, ...] = (
    *MECHANICS,
    *FLUIDS_AND_HEAT,
    *ELECTRICITY,
    *LIGHT_AND_ATOMS,
    *CHEMISTRY,
    *LIFE,
    *EARTH_SKY_AND_PEOPLE,
)
"""All laws by field."""
