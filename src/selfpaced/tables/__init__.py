"""Tables from files: CSV, TSV, Parquet and their gzipped forms, with line numbers and typed columns.

:func:`read_table` reads a file strictly and remembers at which line each row began; :class:`TypedColumns` finds
out what each column holds; :func:`preprocessor` turns a messy table into features with names.

>>> import pandas as pd
>>> from selfpaced.tables import preprocessor
>>> frame = pd.DataFrame({"age": [31.0, None, 54.0, 47.0] * 9, "city": ["Rome", "Oslo", "Rome", None] * 9})
>>> preprocessor().fit_transform(frame).columns.tolist()
['age', 'age is missing', 'city=(missing)', 'city=Oslo', 'city=Rome']
"""

from .batches import TableBatches, matching_files
from .decisions import Reviewed, RowDecision, apply_decisions, read_answers, row_marks
from .errors import TableError, TableWarning
from .features import TableFeatures, preprocessor
from .labels import label_text, label_variants, merge_labels, read_merges
from .notices import conflicting_duplicates, notices, summary_rows
from .parsing import decimal_sign, looks_numeric, parse_numbers
from .reading import LoadedTable, read_table, text_rows
from .schema import Schema, SchemaColumn, TypedColumns, infer_schema, suggestion
from .text import Dialect, Lines

__all__ = [
    "Dialect",
    "Lines",
    "LoadedTable",
    "Reviewed",
    "RowDecision",
    "Schema",
    "SchemaColumn",
    "TableBatches",
    "TableError",
    "TableFeatures",
    "TableWarning",
    "TypedColumns",
    "apply_decisions",
    "conflicting_duplicates",
    "decimal_sign",
    "infer_schema",
    "label_text",
    "label_variants",
    "looks_numeric",
    "matching_files",
    "merge_labels",
    "notices",
    "parse_numbers",
    "preprocessor",
    "read_answers",
    "read_merges",
    "read_table",
    "row_marks",
    "suggestion",
    "summary_rows",
    "text_rows",
]
