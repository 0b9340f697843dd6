"""Where rows lie: in memory, or in files that do not fit into it; models ask for sums over blocks and a few rows."""

from .sample import ContentSample, contents
from .scratch import ScratchTable, opened, parse_bytes, spool
from .sources import is_files, is_source
from .suspects import write_suspects
from .table import Block, ClassWeightedTable, MemoryTable, Rows, Sums, Table, added, joined

__all__ = [
    "Block",
    "ClassWeightedTable",
    "ContentSample",
    "MemoryTable",
    "Rows",
    "ScratchTable",
    "Sums",
    "Table",
    "added",
    "contents",
    "is_files",
    "is_source",
    "joined",
    "opened",
    "parse_bytes",
    "spool",
    "write_suspects",
]
