"""Public path of `shine.faces.runs`."""

from shine.faces.runs import *
from shine.faces.runs import __all__, __dir__
