"""Public path of `shine.faces.callbacks`."""

from shine.faces.callbacks import *
from shine.faces.callbacks import __all__, __dir__
