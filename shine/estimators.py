"""Public path of `shine.faces.estimators`."""

from shine.faces.estimators import *
from shine.faces.estimators import __all__, __dir__
