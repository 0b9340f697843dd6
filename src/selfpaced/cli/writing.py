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
    with replacing(path) as stream, _text(stream, packed) as text:
        guarded_frame(frame).to_csv(text, index=False, sep="\t" if kind == "tsv" else ",", lineterminator="\n")


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
