"""Columns of a text file while it is read: numbers go straight to where they stay, so that there is no second copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .formulas import unguarded

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ReadColumns", "fill"]


@dataclass(frozen=True, eq=False)
class ReadColumns:
    """The columns of a file.

    Attributes
    ----------
    table : pyarrow.Table
        Those that are no numbers, or all of them.
    numbers : dict of str to ndarray
        The others.
    names : list of str
        Of all columns, in their order.
    n : int
        Rows.
    integers : frozenset of str
        Names of the columns of whole numbers.
    """

    table: Any
    numbers: dict[str, NDArray[Any]]
    names: list[str]
    n: int
    integers: frozenset[str]

    @classmethod
    def of(cls, table: Any) -> ReadColumns:
        """A table that was read at once."""
        return cls(table, {}, table.schema.names, table.num_rows, _integers(table.schema))

    def beside(self, others: pd.DataFrame) -> pd.DataFrame:
        """All columns as a frame, where those of the table are one, with marks for spreadsheets taken off."""
        import pandas as pd

        if not self.numbers:
            return others
        texts = (others.iloc[:, place] for place in range(others.shape[1]))
        found = [self.numbers[name][: self.n] if name in self.numbers else next(texts) for name in self.names]
        frame = pd.DataFrame(dict(enumerate(found)), copy=False)
        frame.columns = pd.Index([unguarded(name) for name in self.names])
        return frame


def _integers(schema: Any) -> frozenset[str]:
    import pyarrow as pa

    return frozenset(one.name for one in schema if pa.types.is_integer(one.type))


def fill(batches: Any, rows: int) -> ReadColumns:
    """Read batches to their end; ``rows`` is how many there are at most, in all likelihood."""
    import pyarrow as pa

    names, kinds, n = batches.schema.names, batches.schema.types, 0
    numbers = {
        name: np.empty(rows, dtype=kind.to_pandas_dtype())
        for name, kind in zip(names, kinds, strict=True)
        if pa.types.is_floating(kind) or pa.types.is_integer(kind)
    }
    rest = [name for name in names if name not in numbers]
    parts: list[Any] = []
    for batch in batches:
        for name, room in numbers.items():
            numbers[name] = _put(batch.column(name), room, n)
        n += batch.num_rows
        parts.append(batch.select(rest))
    schema = pa.schema([batches.schema.field(name) for name in rest])
    return ReadColumns(pa.Table.from_batches(parts, schema), numbers, names, n, _integers(batches.schema))


def _put(column: Any, room: NDArray[Any], begin: int) -> NDArray[Any]:
    """The room with the cells of a column in it; whole numbers with gaps are decimals, as pandas has them."""
    end = begin + len(column)
    if end > len(room):
        room = np.concatenate([room[:begin], np.empty(end, dtype=room.dtype)])
    if column.null_count and room.dtype.kind != "f":
        room = room.astype(np.float64)
    room[begin:end] = column.to_numpy(zero_copy_only=False)
    return room
