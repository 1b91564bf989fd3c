"""Public path of `shine.faces.deap`."""

from shine.faces.deap import *
from shine.faces.deap import __all__, __dir__
