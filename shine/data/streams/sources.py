"""Sources of streams: Parquet and Arrow files and folders, NumPy's files, frames and relations of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import DataError, needing, placed
from shine.data.files.numerals import is_missing
from shine.data.files.tables import readable, unusable
from shine.data.streams.conditions import condition
from shine.data.streams.streams import Stream, Texts, Values, block_rows
from shine.lang.forms.names import cut, listed, shown, value_text

STREAMED = {".parquet": "parquet", ".feather": "ipc", ".arrow": "ipc", ".ipc": "ipc"}
"""Arrow's name of the format, by the ending of the file's name."""


def is_streamable(source: object) -> bool:
    """Whether something is a file or a folder of these formats, or an object that is read batch by batch."""
    if isinstance(source, str | Path):
        path = Path(source)
        return path.is_dir() or path.suffix.lower() in (*STREAMED, ".npy")
    return isinstance(source, Stream) or _opener(source) is not None


def open_stream(source: Any, where: Any = None) -> Stream:
    """A stream of something that `is_streamable`; a `DataError` if it cannot be read, has no row, or is no such thing.

    Parameters
    ----------
    source : path, pyarrow.dataset.Dataset, polars.LazyFrame, duckdb.DuckDBPyRelation, numpy.memmap or Stream
    where : str or pyarrow.compute.Expression, optional
        Rows to keep (see `shine.data.streams.conditions`), of Arrow's files; parts of files that have none are not
        read.
    """
    if isinstance(source, str | Path):
        stream = _of_path(Path(source), where)
    elif where is not None and "pyarrow" not in type(source).__module__:
        raise DataError(f"where belongs to files and data sets of Arrow; filter the {type(source).__name__} itself")
    elif isinstance(source, Stream):
        stream = source
    else:
        opener = _opener(source)
        if opener is None:
            raise DataError(
                f"a {type(source).__name__} cannot be streamed; use a path, a data set of pyarrow, a LazyFrame of "
                "Polars, a relation of DuckDB, or a memory map of NumPy"
            )
        stream = opener(source) if where is None else _of_arrow(source, "the data set", where)
    if not stream.rows:
        chosen = "" if where is None else f" where {cut(where)}"
        raise DataError(f"{stream.name}: there is no row of data{chosen}")
    return stream


def _opener(source: object) -> Callable[[Any], Stream] | None:
    """Opener of an object, by the module of its type: no library is imported for it."""
    if isinstance(source, np.memmap):
        return _of_array
    for kind in type(source).__mro__:
        known = _OPENERS.get((kind.__module__.partition(".")[0].lstrip("_"), kind.__name__))
        if known is not None:
            return known
    return None


def _of_path(path: Path, where: Any) -> Stream:
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if path.suffix.lower() == ".npy" and path.is_file():
        if where is not None:
            raise DataError(f"{path}: where needs Parquet or Arrow files; leave the rows out as the file is written")
        return _of_npy(path)
    with needing(f"{path}: reading it", "pyarrow", "parquet"):
        import pyarrow
        from pyarrow import dataset
    form = _form(path)
    try:
        found = dataset.dataset(str(path), format=form, partitioning="hive" if path.is_dir() else None)
        _check_alike(path, found)
    except (OSError, pyarrow.ArrowException, ValueError, TypeError) as error:
        repeated = _repeated_heading(path, form)
        raise DataError(repeated or f"{path}: cannot be read as {form}: {cut(error)}") from None
    return _of_arrow(found, str(path), where)


def _form(path: Path) -> str:
    """Arrow's name of the format of a file, or of all files of a folder."""
    if not path.is_dir():
        if path.suffix.lower() not in STREAMED:
            allowed = ", ".join((*STREAMED, ".npy"))
            raise DataError(f"{path}: only a folder, or a file that ends in one of {allowed}, is read block by block")
        return STREAMED[path.suffix.lower()]
    hidden = ("_", ".")  # as Arrow itself leaves them out
    names = (file.relative_to(path).parts for file in path.rglob("*") if file.is_file())
    endings = {Path(parts[-1]).suffix.lower() for parts in names if not any(part.startswith(hidden) for part in parts)}
    forms = {STREAMED.get(ending) for ending in endings}
    if len(forms) != 1 or None in forms:
        has = listed(sorted(ending or "files without an ending" for ending in endings)) or "no file"
        raise DataError(f"{path}: a folder of data has files of one format, {' or '.join(STREAMED)}; it has {has}")
    return str(forms.pop())


def _repeated_heading(path: Path, form: str) -> str:
    """Message about two columns of one heading, which Arrow does not stream; empty if there are none."""
    from pyarrow import dataset, schema

    with suppress(Exception):  # the first error tells more
        for fragment in dataset.dataset(str(path), format=form, schema=schema([])).get_fragments():
            names = fragment.physical_schema.names
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                return f"{path}: {names.count(twice)} columns have the heading {shown(twice)}; rename one of them"
    return ""


def _check_alike(path: Path, found: Any) -> None:
    """Raise a `DataError` if the files of a folder differ in their columns."""
    first: tuple[str, dict[str, str]] | None = None
    for fragment in found.get_fragments():
        own = {field.name: str(field.type) for field in fragment.physical_schema}
        if first is None:
            first = fragment.path, own
        elif own != first[1]:
            before = first[1]
            differing = [name for name in {**before, **own} if before.get(name) != own.get(name)]
            # Columns that a message about differing files names.
            told = [
                f"{shown(name)} is {before.get(name, 'missing')} and {own.get(name, 'missing')}"
                for name in differing[:3]
            ]
            raise DataError(
                f"{path}: its files differ in their columns: in {Path(first[0]).name} and {Path(fragment.path).name}, "
                f"{'; '.join(told) or 'their order'}; write them alike, or open the alike ones by themselves"
            )


def _of_arrow(found: Any, name: str = "the data set", where: Any = None) -> Stream:
    """A stream of a data set of pyarrow."""
    import pyarrow
    from pyarrow import compute, dataset

    headings = tuple(found.schema.names)
    if isinstance(where, str):
        where = condition(where, found.schema)
    elif where is not None and not isinstance(where, compute.Expression):
        raise DataError(f"where is a text such as 'year >= 2020', or an expression of Arrow, not {value_text(where)}")
    # Batches that Arrow reads ahead: enough for its threads, and little memory.
    options: dict[str, Any] = {"batch_readahead": 4, "fragment_readahead": 1}
    if isinstance(getattr(found, "format", None), dataset.ParquetFileFormat):
        # What Arrow buffers before it reads it, it keeps until the end of the file.
        options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(
            pre_buffer=False, page_checksum_verification=True
        )

    def read(indices: Sequence[int]) -> Iterator[list[Values]]:
        columns = [headings[index] for index in indices]
        yield from _arrow_batches(
            name, columns, lambda: found.scanner(columns, where, block_rows(len(columns)), **options).to_batches()
        )

    with placed(
        f"{name}: cannot be read", OSError, pyarrow.ArrowException, NotImplementedError, kind=DataError, told=cut
    ):
        rows = found.count_rows(filter=where)
    return Stream(name, headings, rows, read)


def _of_lazy_frame(frame: Any) -> Stream:
    """A stream of a LazyFrame of Polars, which is computed anew for each pass."""
    import polars

    name = "the LazyFrame"
    with placed(f"{name}: cannot be read", OSError, polars.exceptions.PolarsError, kind=DataError, told=cut):
        headings = tuple(frame.collect_schema().names())
        rows = int(frame.select(polars.len()).collect(engine="streaming").item())

    def read(indices: Sequence[int]) -> Iterator[list[Values]]:
        columns = [headings[index] for index in indices]
        parts = frame.select(columns).collect_batches(chunk_size=block_rows(len(columns)), maintain_order=True)
        with placed(f"{name}: cannot be read", polars.exceptions.PolarsError, kind=DataError, told=cut):
            batches = (batch for part in parts for batch in part.to_arrow().to_batches())
            yield from _arrow_batches(name, columns, lambda: batches)

    return Stream(name, headings, rows, read)


def _of_relation(relation: Any) -> Stream:
    """A stream of a relation of DuckDB, which is computed anew for each pass."""
    import duckdb

    name, headings = "the relation", tuple(relation.columns)
    with placed(f"{name}: cannot be read", duckdb.Error, kind=DataError, told=cut):
        rows = int(relation.aggregate("count(*)").fetchall()[0][0])

    def read(indices: Sequence[int]) -> Iterator[list[Values]]:
        columns = [headings[index] for index in indices]
        quoted = ", ".join('"' + heading.replace('"', '""') + '"' for heading in columns)
        with placed(f"{name}: cannot be read", duckdb.Error, kind=DataError, told=cut):
            selected = relation.project(quoted)
            reader = getattr(selected, "to_arrow_reader", None) or selected.fetch_record_batch
            yield from _arrow_batches(name, columns, lambda: reader(block_rows(len(columns))))

    return Stream(name, headings, rows, read)


def _of_npy(path: Path) -> Stream:
    """A stream of a file of NumPy's, which is mapped into memory: no pickled object is ever loaded."""
    with placed(f"{path}: is not a valid file of NumPy's", OSError, ValueError, EOFError, kind=DataError, told=cut):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    return _of_array(array, str(path))


def _of_array(array: Any, name: str = "the memory map") -> Stream:
    """A stream of a matrix, whose columns are x0, x1, ..., or of an array of records, whose fields are columns."""
    columns: list[Any]
    if array.dtype.names is not None and array.ndim == 1:
        headings, columns = tuple(array.dtype.names), [array[field] for field in array.dtype.names]
    elif array.dtype.names is None and array.ndim == 2:
        headings, columns = tuple(f"x{place}" for place in range(array.shape[1])), list(array.T)
    else:
        raise DataError(f"{name}: has shape {array.shape}; a matrix, or an array of records, is needed")
    return Stream(name, headings, len(array), lambda indices: _slices(name, headings, columns, indices))


def _slices(
    name: str, headings: Sequence[str], columns: Sequence[Any], indices: Sequence[int]
) -> Iterator[list[Values]]:
    for index in indices:
        dtype = columns[index].dtype
        if dtype.kind not in "biufmM" or columns[index].ndim != 1:
            raise unusable(name, headings[index], dtype)
    count = len(columns[0])
    rows = block_rows(len(indices))
    for start in range(0, count, rows):
        yield [np.asarray(columns[index][start : start + rows]) for index in indices]


def _arrow_batches(name: str, headings: Sequence[str], batches: Callable[[], Iterable[Any]]) -> Iterator[list[Values]]:
    """Columns of Arrow's batches; those of float64 without nulls are views of its memory."""
    import pyarrow

    with placed(f"{name}: cannot be read", OSError, pyarrow.ArrowException, kind=DataError, told=cut):
        for batch in batches():
            if batch.num_rows:
                yield [_values(name, heading, batch.column(at)) for at, heading in enumerate(headings)]


def _values(name: str, heading: str, array: Any) -> Values:
    from pyarrow import types

    array = readable(name, heading, array)
    kind = array.type
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        coded = array.dictionary_encode()
        # A dictionary may have nulls itself.
        if types.is_dictionary(kind) and not types.is_string(kind.value_type):
            return _values(name, heading, array.cast(kind.value_type))
        texts = [(text or "").strip() for text in coded.dictionary.to_pylist()]
        places = np.array([*(-1 if is_missing(text) else place for place, text in enumerate(texts)), -1], np.int64)
        return Texts(places[coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)], tuple(texts))
    if types.is_time(kind):
        # NumPy has no times of day: they are durations since midnight.
        array = array.cast("int64" if types.is_time64(kind) else "int32").cast("int64").cast(f"duration[{kind.unit}]")
    return np.asarray(array.to_numpy(zero_copy_only=False))


_OPENERS: dict[tuple[str, str], Callable[[Any], Stream]] = {
    ("pyarrow", "Dataset"): _of_arrow,
    ("polars", "LazyFrame"): _of_lazy_frame,
    ("duckdb", "DuckDBPyRelation"): _of_relation,
}
"""Openers of other libraries' objects, by library and type."""
