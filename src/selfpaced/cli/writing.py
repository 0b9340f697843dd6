"""Tables to files, in the format their name says."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from selfpaced.persistence import replacing

from .errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from selfpaced.tables import Dialect

__all__ = ["format_of", "write_frame", "write_rows"]

FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(path: Path) -> tuple[str, bool]:
    """Return ``csv``, ``tsv`` or ``parquet``, and whether the file is gzipped.

    >>> format_of(Path("table.tsv.gz"))
    ('tsv', True)
    """
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise UsageError(f"the format of {str(path)!r} is unknown: use .csv, .tsv or .parquet, also with .gz")
    return FORMATS[suffix], name.endswith(".gz")


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a data frame; the file appears when it is complete. Texts are made safe for spreadsheets."""
    from selfpaced.tables.formulas import guarded_frame

    kind, packed = format_of(path)
    with replacing(path) as stream:
        if kind == "parquet":
            frame.to_parquet(stream, index=False, compression="gzip" if packed else "snappy")
            return
        with _text(stream, packed) as text:
            separator = "\t" if kind == "tsv" else ","
            guarded_frame(frame).to_csv(text, index=False, sep=separator, lineterminator="\n")


def write_rows(rows: Iterable[list[str]], path: Path, separator: str, dialect: Dialect) -> int:
    """Write records of text, made safe for spreadsheets, and return how many there are."""
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
