"""Tables from files: CSV, TSV, Parquet and their gzipped forms, with line numbers, checks and features.

:func:`read_table` reads a file strictly and remembers at which line each row began; :class:`TableEncoder` turns the
columns of a table as people keep it into features with names.

>>> import pandas as pd
>>> from selfpaced import TableEncoder
>>> frame = pd.DataFrame({"age": [31.0, None, 54.0, 47.0] * 9, "city": ["Rome", "Oslo", "Rome", None] * 9})
>>> TableEncoder().fit(frame).get_feature_names_out().tolist()
['age', 'age is missing', 'city=Rome', 'city=Oslo', 'city=(missing)']
"""

from .batches import TableBatches, matching_files
from .cells import CellLevels, NumberFormat
from .checks import (
    column_findings,
    conflicting_duplicates,
    label_text,
    label_variants,
    merge_labels,
    notices,
    read_merges,
    summary_rows,
)
from .decisions import Reviewed, RowDecision, apply_decisions, read_answers, row_marks, written_cells
from .encoder import TableEncoder
from .reading import Lines, LoadedTable, read_table, text_rows
from .text import Dialect, TableError, TableWarning, suggestion

__all__ = [
    "CellLevels",
    "Dialect",
    "Lines",
    "LoadedTable",
    "NumberFormat",
    "Reviewed",
    "RowDecision",
    "TableBatches",
    "TableEncoder",
    "TableError",
    "TableWarning",
    "apply_decisions",
    "column_findings",
    "conflicting_duplicates",
    "label_text",
    "label_variants",
    "matching_files",
    "merge_labels",
    "notices",
    "read_answers",
    "read_merges",
    "read_table",
    "row_marks",
    "suggestion",
    "summary_rows",
    "text_rows",
    "written_cells",
]
