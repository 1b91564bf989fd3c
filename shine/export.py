"""Public path of `shine.formats.write`."""

from shine.formats.write import *
