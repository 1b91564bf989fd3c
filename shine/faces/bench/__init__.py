"""A comparison of evaluators: how fast Shine's tiers and other libraries score one population.

Every evaluator gets the same individuals and the same rows, and the losses of the timed run are compared with those of
the reference tier.
"""

from shine.faces.bench.checks import Agreement
from shine.faces.bench.contenders import TIERS, Compile, Contender
from shine.faces.bench.peers import PEERS
from shine.faces.bench.run import CONTENDERS, Measurement, Report, Settings, benchmark
from shine.faces.bench.table import report_text

__all__ = [
    "CONTENDERS", "PEERS", "TIERS", "Agreement", "Compile", "Contender", "Measurement", "Report", "Settings",
    "benchmark", "report_text",
]  # fmt: skip
