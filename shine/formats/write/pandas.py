"""Formulas as Python modules with a function of a pandas data frame."""

from __future__ import annotations

from dataclasses import replace

from shine.formats.write.python import Module
from shine.formats.write.sources import Headings, Source, sourced, takes_models
from shine.lang.forms.names import check_variable
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

_FUNCTION = '''\
def {name}(frame):
    """Value of the formula for each row of a data frame, which may have other columns, too."""
    return pd.Series({values}, index=frame.index, name={name!r}, dtype="float64")
'''

_NUMBERS = '.to_numpy(dtype="float64", na_value=np.nan)'


@takes_models
def pandas_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A module with the formula as a function of a data frame, which finds the columns by their headings.

    It imports only NumPy and pandas. Its values are those of `shine.formats.write.python.python_source`; missing values
    are NaN.

    Parameters
    ----------
    tree, headings, precision
        As of `shine.export`.
    name : str
        Name of the function, and of the series that it returns.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a primitive has no definition, the text would be too long, or two columns have one heading.
    """
    check_variable(name, "function")
    tree, sources = sourced(rounded_tree(tree, precision, named=False), headings, "pandas")
    inner = f"_{name}_of_columns"
    called = {own: source.heading for own, source in sources.items() if source.kind == "number"}
    module = Module(inner, called, {"pd", name}).module(replace(tree, parameters=tuple(sources)), inner)
    arguments = "".join(f"        {_number(source)},\n" for source in sources.values())
    values = f"{inner}(\n{arguments}    )" if sources else f"{inner}()"
    module = module.replace("import numpy as np\n", "import numpy as np\nimport pandas as pd\n", 1)
    return f"{module}\n\n{_FUNCTION.format(name=name, values=values)}"


def _number(source: Source) -> str:
    """The number of a column, as an array."""
    column = f"frame[{source.heading!r}]"
    if source.kind == "text":
        made = f"{column}.astype(str).map({dict(source.codes)!r})"
        return (made if source.mean is None else f"{made}.mask({column}.isna(), {source.mean!r})") + _NUMBERS
    if source.kind in ("date", "duration"):
        read = "to_datetime" if source.kind == "date" else "to_timedelta"
        since = f" - pd.Timestamp({source.origin!r})" if source.origin else ""
        day_first = ", dayfirst=True" if source.day_first else ""
        column = f"((pd.{read}({column}{day_first}){since}) / pd.Timedelta(1, {source.unit!r}))"
    if source.marks:
        column = f"{column}.mask({column}.isin({list(source.marks)!r}))"
    return (column if source.mean is None else f"{column}.fillna({source.mean!r})") + _NUMBERS
