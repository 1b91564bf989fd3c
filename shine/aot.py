"""Public path of `shine.formats.native`."""

from shine.formats.native import *
from shine.formats.native import __all__, __dir__
