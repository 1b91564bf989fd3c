"""Formulas as Python modules with a function of a pandas data frame."""

from __future__ import annotations

import keyword
from dataclasses import replace

from shine.export.given import takes_models
from shine.export.headings import Headings, column_headings
from shine.export.python.module import Module
from shine.lang.rounding import Precision, rounded_tree
from shine.lang.tree import Tree

_FUNCTION = '''\
def {name}(frame):
    """Value of the formula for each row of a data frame, which may have other columns, too."""
    return pd.Series({values}, index=frame.index, name={name!r}, dtype="float64")
'''

_COLUMN = '        frame[{heading}].to_numpy(dtype="float64", na_value=np.nan),\n'


@takes_models
def pandas_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A module with the formula as a function of a data frame, which finds the columns by their headings.

    It imports only NumPy and pandas. Its values are those of `shine.export.python.python_source`; missing values are
    NaN.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the function, and of the series that it returns.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature; the names of the features by default.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a primitive has no definition, the text would be too long, or two columns have one heading.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not a name for a Python function")
    columns = column_headings(tree, headings, "pandas")
    tree = replace(rounded_tree(tree, precision, named=False), parameters=tuple(columns))
    inner = f"_{name}_of_columns"
    module = Module(inner, columns, {"pd", name}).text(tree, inner)
    arguments = "".join(_COLUMN.format(heading=repr(heading)) for heading in columns.values())
    values = f"{inner}(\n{arguments}    )" if columns else f"{inner}()"
    module = module.replace("import numpy as np\n", "import numpy as np\nimport pandas as pd\n", 1)
    return f"{module}\n\n{_FUNCTION.format(name=name, values=values)}"
