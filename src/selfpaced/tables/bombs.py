"""Files that unpack into more than tables do: refused before they fill the memory.

A gzipped file says nothing true about its size, so it is counted while it is unpacked. In Parquet a value that is
repeated costs nothing, whether it is a number or a text of ten megabytes: numbers are counted by what the file says of
itself, texts by looking at how long they are without writing them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .errors import TableError

__all__ = ["refuse_bomb", "refuse_parquet_bomb"]

FREE = 1 << 28  # a choice: bytes that a packed file may unpack into, however small it is
RATIO = 200  # a choice: beyond that, this many times its own size; tables pack into a tenth, rarely a fiftieth
WIDTH = 8  # cost: bytes of a number whose type does not say
ROWS = 1 << 16  # cost: rows whose texts are looked at together
FEW = 16  # cost: the same, at least, where texts may be long and have to be written out
DELTA = "DELTA_BYTE_ARRAY"  # an encoding by how a text begins like the one before, which hides how long it is


def refuse_bomb(path: Path, size: int, remedy: str = "unpack it first") -> None:
    """Stop where a file unpacks into so many bytes that it is no table."""
    if size > FREE and size > RATIO * path.stat().st_size:
        raise TableError(
            path, f"unpacks into more than {RATIO} times its size, as tables do not; if it is one, {remedy}"
        )


def refuse_parquet_bomb(path: Path, source: Any) -> None:
    """The same for Parquet, by what it would be in memory."""
    import pyarrow as pa

    try:
        for size in _sizes(source):
            refuse_bomb(path, size, "write it again without compression and dictionaries")
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(path, f"cannot be read as Parquet: {error}") from error


def _sizes(source: Any) -> Iterator[int]:
    """Bytes of the numbers, and with them of more and more of the texts."""
    from pyarrow import parquet

    with parquet.ParquetFile(source) as file:
        chunks = list(_chunks(file.metadata))
        widths = {field.name: _width(field.type) for field in file.schema_arrow}
    texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
    numbers = [chunk for chunk in chunks if chunk.physical_type != "BYTE_ARRAY"]
    size = int(sum(chunk.num_values * widths.get(chunk.path_in_schema, WIDTH) for chunk in numbers))
    yield size
    if sum(chunk.num_values * chunk.total_uncompressed_size for chunk in texts) > FREE:  # no text is longer than all
        for length in _lengths(source, texts):
            size += length
            yield size


def _chunks(metadata: Any) -> Iterator[Any]:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            yield metadata.row_group(group).column(column)


def _width(kind: Any) -> float:
    try:
        return float(kind.bit_width / 8)
    except ValueError:
        return WIDTH


def _lengths(source: Any, texts: list[Any]) -> Iterator[int]:
    """Bytes of the texts, piece by piece; where they can be, they are read as places in a list of different ones."""
    from pyarrow import parquet

    names = {chunk.path_in_schema for chunk in texts}
    alike = {chunk.path_in_schema for chunk in texts if DELTA in chunk.encodings}
    rows = ROWS
    if alike:
        rows = int(np.clip(FREE // max(chunk.total_uncompressed_size for chunk in texts), FEW, ROWS))
    with parquet.ParquetFile(source, read_dictionary=sorted(names - alike)) as file:
        for batch in file.iter_batches(batch_size=rows, columns=sorted(names)):
            for column in batch.columns:
                yield from map(_length, _leaves(column))


def _length(array: Any) -> int:
    """Bytes of an array of texts, were it written out."""
    import pyarrow as pa
    from pyarrow import compute

    if not isinstance(array, pa.DictionaryArray):
        return int(array.nbytes)
    lengths = compute.binary_length(array.dictionary).take(array.indices)
    return int(compute.sum(lengths.cast("int64")).as_py() or 0)


def _leaves(column: Any) -> Iterator[Any]:
    """Whatever an array of lists and records holds at its ends."""
    import pyarrow as pa

    if isinstance(column, pa.StructArray):
        for part in column.flatten():
            yield from _leaves(part)
    elif isinstance(column, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        yield from _leaves(column.values)
    else:
        yield column
