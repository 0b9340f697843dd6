"""Where rows lie: in memory, or in files that do not fit into it; models ask for sums over blocks and a few rows."""

from .dask_input import from_dask, is_dask, lazy_for_dask, refuse_dask
from .sample import ContentSample, contents, drawn
from .scratch import ScratchTable, assessed_blocks, opened, parse_bytes, spool, suspect_frame, write_suspects
from .sources import is_source
from .table import Block, ClassWeightedTable, MemoryTable, Rows, Sums, Table

__all__ = [
    "Block",
    "ClassWeightedTable",
    "ContentSample",
    "MemoryTable",
    "Rows",
    "ScratchTable",
    "Sums",
    "Table",
    "assessed_blocks",
    "contents",
    "drawn",
    "from_dask",
    "is_dask",
    "is_source",
    "lazy_for_dask",
    "opened",
    "parse_bytes",
    "refuse_dask",
    "spool",
    "suspect_frame",
    "write_suspects",
]
