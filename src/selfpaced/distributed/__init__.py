"""Where rows lie: in memory, or in files that do not fit into it; models ask for sums over blocks and a few rows."""

from ..fitting import is_dask
from .scratch import (
    ScratchTable,
    assessed_blocks,
    numbers_with,
    opened,
    parse_bytes,
    spool,
    suspect_frame,
    write_suspects,
)  # fmt: skip
from .table import (
    Block,
    ContentSample,
    MappedTable,
    MemoryTable,
    Rows,
    ScoreMixin,
    Sums,
    Table,
    class_weighted,
    contents,
    drawn,
    from_dask,
    in_blocks,
    lazy_for_dask,
    on_dask,
)  # fmt: skip

__all__ = [
    "Block", "ContentSample", "MappedTable", "MemoryTable", "Rows", "ScoreMixin", "ScratchTable", "Sums", "Table",
    "assessed_blocks", "class_weighted", "contents", "drawn", "from_dask", "in_blocks", "is_dask", "lazy_for_dask",
    "numbers_with", "on_dask", "opened", "parse_bytes", "spool", "suspect_frame", "write_suspects",
]  # fmt: skip
