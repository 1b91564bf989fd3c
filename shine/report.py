"""Public path of `shine.formats.page`."""

from shine.formats.page import *
from shine.formats.page import __all__, __dir__
