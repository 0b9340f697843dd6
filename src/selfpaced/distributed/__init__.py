"""Where rows lie: in memory, or in files that do not fit into it; models ask for sums over blocks and a few rows."""

from .scratch import ScratchTable, spool, write_suspects
from .table import Block, MemoryTable, Table

__all__ = ["Block", "MemoryTable", "ScratchTable", "Table", "spool", "write_suspects"]
