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
from .decisions import Reviewed, RowDecision, apply_decisions, read_answers, row_marks
from .encoder import TableEncoder
from .errors import TableError, TableWarning, suggestion
from .labels import label_text, label_variants, merge_labels, read_merges
from .notices import conflicting_duplicates, notices, summary_rows
from .reading import LoadedTable, read_table, text_rows
from .text import Dialect, Lines

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
]
