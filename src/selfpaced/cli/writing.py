"""Tables to files, in the format their name says."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from selfpaced.persistence import replacing

from .errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import Dialect

__all__ = ["format_of", "write_frame", "write_rows"]

LINES = 1 << 14  # cost: lines that are put together at a time


def format_of(path: Path) -> tuple[str, bool]:
    """``csv``, ``tsv`` or ``parquet``, and whether it is gzipped.

    >>> format_of(Path("table.tsv.gz"))
    ('tsv', True)
    """
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    formats = {
        ".csv": "csv",
        ".txt": "csv",
        ".data": "csv",
        ".tsv": "tsv",
        ".tab": "tsv",
        ".parquet": "parquet",
    }
    formats[".pq"] = "parquet"
    if suffix not in formats:
        raise UsageError(f"cannot tell the format of {str(path)!r}: use .csv, .tsv or .parquet, also with .gz")
    return formats[suffix], packed


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """A data frame; the file appears when it is complete. Texts are made safe for spreadsheets."""
    from selfpaced.tables.formulas import guarded_frame

    kind, packed = format_of(path)
    if kind == "parquet":
        with replacing(path) as stream:
            frame.to_parquet(stream, index=False, compression="gzip" if packed else "snappy")
        return
    separator = "\t" if kind == "tsv" else ","
    frame = _dates_as_text(frame)
    with replacing(path) as stream, _text(stream, packed) as text:
        for begin in range(0, max(len(frame), 1), LINES):
            _write_piece(guarded_frame(frame.iloc[begin : begin + LINES]), text, separator, header=not begin)


def _dates_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Dates in one format for the whole column: of a piece of midnights alone pandas would leave out the time."""
    dates = [place for place, kind in enumerate(frame.dtypes) if kind.kind == "M"]
    if dates:
        frame = frame.copy(deep=False)
    for place in dates:
        column = frame.iloc[:, place]
        frame.isetitem(place, column.astype(str).where(column.notna()))
    return frame


def _write_piece(frame: pd.DataFrame, text: IO[str], separator: str, *, header: bool) -> None:
    columns = [_cells(frame.iloc[:, place], separator) for place in range(frame.shape[1])]
    if len(columns) < 2 or any(column is None for column in columns):
        frame.to_csv(text, index=False, header=header, sep=separator, lineterminator="\n")
        return
    import pyarrow.compute as pc

    if header:
        csv.writer(text, delimiter=separator, lineterminator="\n").writerow(frame.columns)
    text.write("\n".join([*pc.binary_join_element_wise(*columns, separator).to_pylist(), ""]))


def _cells(column: pd.Series, separator: str) -> Any:
    """The cells of a column as pandas writes them, at once where they are texts or usual numbers; else None."""
    import numpy as np

    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:  # pragma: no cover - a table that was read has needed it
        return None
    if column.dtype == np.float64:
        return _numbers(column.to_numpy())
    try:
        cells = pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return None
    cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if pa.types.is_integer(cells.type):
        return pc.fill_null(cells.cast(pa.string()), "")
    if not pa.types.is_string(cells.type) and not pa.types.is_large_string(cells.type):
        return None
    cells = pc.fill_null(cells.cast(pa.string()), "")
    risky = pc.match_substring_regex(cells, f'["\r\n{separator}]')
    if not pc.any(risky).as_py():
        return cells
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', "")
    return pc.if_else(risky, quoted, cells)


def _numbers(values: Any) -> Any:
    """Shortest decimals; whole, tiny and huge numbers, which Arrow writes in another way, as Python does."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    gaps = np.isnan(values)
    size = np.abs(values)
    odd = np.flatnonzero(~gaps & ((values == np.rint(values)) | (size < 1e-3) | (size >= 1e9)))
    cells = pc.fill_null(pa.array(values, mask=gaps).cast(pa.string()), "")
    if not odd.size:
        return cells
    mask = np.zeros(len(values), dtype=bool)
    mask[odd] = True
    return pc.replace_with_mask(cells, pa.array(mask), pa.array([repr(value) for value in values[odd].tolist()]))


def write_rows(rows: Iterable[list[str]], path: Path, separator: str, dialect: Dialect) -> int:
    """Records as text, one by one, made safe for spreadsheets; gives back how many."""
    from selfpaced.tables.formulas import guarded

    _, packed = format_of(path)
    count = 0
    with replacing(path) as stream, _text(stream, packed, dialect.encoding) as text:
        writer = csv.writer(text, delimiter=separator, lineterminator=dialect.newline)
        for row in rows:
            writer.writerow([guarded(cell) for cell in row])
            count += 1
    return count


@contextmanager
def _text(stream: IO[bytes], packed: bool, encoding: str = "utf-8") -> Iterator[IO[str]]:
    target = gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) if packed else stream
    text = io.TextIOWrapper(target, encoding=encoding, newline="")
    try:
        yield text
        text.flush()
    finally:
        text.detach()
        if packed:
            target.close()
